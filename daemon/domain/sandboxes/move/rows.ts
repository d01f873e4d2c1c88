/** Database rows of a room's sandboxes in a move to another host: sandboxes that move along, ended ones, snapshots and ports. */
import type { RoomUid } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { wholly } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { putRows, type Rows, takeRows, valuesIn } from "../../../db/branch.ts";
import type { Queries } from "../../../db/client.ts";
import { insertPort, type PortRow, roomPorts } from "../../ports/index.ts";
import { deleteSnapshotsOf, insertSnapshot, roomSnapshots } from "../snapshots/store.ts";
import type { SnapshotRow } from "../snapshots/table.ts";
import { forgetEnded, insertSandbox, roomSandboxes } from "../store.ts";
import { type SandboxRow, sandboxes } from "../table.ts";

export type Whose = Pick<SandboxRow, "room_uid" | "org_id">;

export interface MovedSandboxes {
  ended: Rows;
  /** They hibernate. */
  carried: SandboxRow[];
  snapshots: SnapshotRow[];
  /** Ports of the sandboxes that move along. */
  ports: PortRow[];
}

/** Precondition: all sandboxes are hibernated or have ended. */
export function takeSandboxes(queries: Queries, roomUid: RoomUid): MovedSandboxes {
  const rows = wholly(takeRows(queries, sandboxes, roomUid));
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

/** Sandboxes that moved along but cannot be used here. */
export interface Putting {
  /** They end. */
  givenUp: ReadonlySet<string>;
}

/** Replaces the rows of the room's earlier stay. The sandboxes are hibernated, and get guest CIDs of this host on resume. */
export function putSandboxes(
  queries: Queries,
  { room_uid: roomUid, org_id }: Whose,
  { ended, carried, snapshots, ports }: MovedSandboxes,
  { givenUp }: Putting,
): void {
  const isItsOwn = (row: Whose) => row.room_uid === roomUid && row.org_id === org_id;
  const ids = new Set<string>(carried.map(({ sandbox_id }) => sandbox_id));
  if (![...carried, ...snapshots, ...ports].every(isItsOwn) || !ports.every(({ sandbox_id }) => ids.has(sandbox_id)))
    throw new ServiceError("invalid_state", {
      detail: "The sandboxes, snapshots or ports that arrived with the room belong to another room.",
    });
  forgetEnded(queries, roomUid);
  putRows(queries, sandboxes, roomUid, ended, { cid_held: () => 0 });
  for (const row of carried) {
    insertSandbox(queries, givenUp.has(row.sandbox_id) ? endingOf(row) : { ...row, cid_held: false });
  }
  deleteSnapshotsOf(queries, roomUid);
  for (const row of snapshots) insertSnapshot(queries, row);
  for (const row of ports) insertPort(queries, row);
}

/** Such a sandbox gets a row first, and then ends like all others. */
function endingOf(row: SandboxRow): SandboxRow {
  const moment = now();
  return {
    ...row,
    ...{ state: "destroying", exit_cause: "host_evacuated", exit_at: moment, last_transition_at: moment },
    ...{
      status_reason: "host_evacuated",
      status_message: "Its room moved to a host that cannot run it.",
      cid_held: false,
    },
  };
}
