/** Owns what the database has of a room's sandboxes when the room goes to another host: those that go along, those that have ended, snapshots and ports. */
import type { RoomUid } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { putRows, type Rows, takeRows, valuesIn } from "../../../db/branch.ts";
import type { Queries } from "../../../db/client.ts";
import { insertPort, type PortRow, roomPorts } from "../../ports/index.ts";
import type { SandboxDeps } from "../deps.ts";
import { deleteSnapshotsOf, insertSnapshot, roomSnapshots } from "../snapshots/store.ts";
import type { SnapshotRow } from "../snapshots/table.ts";
import { forgetEnded, heldCids, insertSandbox, roomSandboxes, unheldCids } from "../store.ts";
import { type SandboxRow, sandboxes } from "../table.ts";

export type Whose = Pick<SandboxRow, "room_uid" | "org_id">;

export interface MovedSandboxes {
  ended: Rows;
  /** They hibernate. */
  carried: SandboxRow[];
  snapshots: SnapshotRow[];
  /** Of those that go along. */
  ports: PortRow[];
}

/** Within a transaction, once all hibernate or have ended. */
export function takeSandboxes(queries: Queries, roomUid: RoomUid): MovedSandboxes {
  const rows = takeRows(queries, sandboxes, roomUid);
  const states = valuesIn(rows, "state");
  const carried = roomSandboxes(queries, roomUid).filter(({ state }) => state === "hibernated");
  const ids = new Set<string>(carried.map(({ sandbox_id }) => sandbox_id));
  return {
    ended: { ...rows, rows: rows.rows.filter((_, at) => states[at] === "destroyed") },
    carried,
    snapshots: roomSnapshots(queries, roomUid),
    ports: roomPorts(queries, roomUid).filter(({ sandbox_id }) => ids.has(sandbox_id)),
  };
}

/** What becomes of those that go along and cannot be had here. */
export interface Putting {
  /** They end. */
  givenUp: ReadonlySet<string>;
  /** So does whoever gets no guest_cid. */
  isLastTry: boolean;
}

/** Those that were here before have gone with the room; guest_cids are this host's own. */
export function putSandboxes(
  deps: Pick<SandboxDeps, "host">,
  queries: Queries,
  { room_uid: roomUid, org_id }: Whose,
  { ended, carried, snapshots, ports }: MovedSandboxes,
  { givenUp, isLastTry }: Putting,
): void {
  const isItsOwn = (row: Whose) => row.room_uid === roomUid && row.org_id === org_id;
  const ids = new Set<string>(carried.map(({ sandbox_id }) => sandbox_id));
  if (![...carried, ...snapshots, ...ports].every(isItsOwn) || !ports.every(({ sandbox_id }) => ids.has(sandbox_id)))
    throw new ServiceError("invalid_state", { detail: "What came with the room is another room's." });
  forgetEnded(queries, roomUid);
  putRows(queries, sandboxes, roomUid, ended, { cid_held: () => 0 });
  for (const row of carried) {
    const cid = givenUp.has(row.sandbox_id) ? null : freeCid(deps, queries, row);
    if (cid === null && !givenUp.has(row.sandbox_id) && !isLastTry)
      throw new Error("no guest_cid of this host is free");
    insertSandbox(queries, cid === null ? endingOf(row) : { ...row, guest_cid: cid, cid_held: true });
  }
  deleteSnapshotsOf(queries, roomUid);
  for (const row of snapshots) insertSnapshot(queries, row);
  for (const row of ports) insertPort(queries, row);
}

/** It ends as any other does, once it has a row. */
function endingOf(row: SandboxRow): SandboxRow {
  const moment = now();
  return {
    ...row,
    ...{ state: "destroying", exit_cause: "host_evacuated", exit_at: moment, last_transition_at: moment },
    ...{
      status_reason: "host_evacuated",
      status_message: "Its room moved to a host that cannot have it.",
      cid_held: false,
    },
  };
}

/** Its own where that is free; null: none is. */
function freeCid({ host }: Pick<SandboxDeps, "host">, queries: Queries, { guest_cid }: SandboxRow): number | null {
  const isHeld = heldCids(queries).has(guest_cid);
  const cids = [...(isHeld ? [] : [guest_cid]), ...unheldCids(queries, guest_cid)];
  let free: number | null | undefined;
  try {
    free = host().transport.firstFree(cids);
  } catch {
    // What the host lacks now keeps no room from coming: the guest is loaded later.
    free = cids[0];
  }
  return free ?? null;
}
