/** Snapshots: creation, use as a source, expiry and deletion. Their paths are in place.ts. */
import { rm } from "node:fs/promises";
import type { RoomUid } from "../../../../shared/ids.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import type { Completions } from "../executions/completion.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { makeSnapshotCreate } from "./create.ts";
import { makeFork } from "./fork.ts";
import { makeSnapshotGet } from "./get.ts";
import type { SnapshotPlaces } from "./place.ts";
import { makeRollback } from "./rollback.ts";
import { deleteSnapshot, deleteSnapshotsOf, expiringSnapshots } from "./store.ts";
import { sweepSnapshots } from "./sweep-leftovers.ts";
import type { SnapshotRow } from "./table.ts";

/** Retry delay of an expired snapshot that is in use. */
const AGAIN_MS = 60_000;

export interface Snapshots {
  operations: Bound[];
  /** Removes incomplete snapshots of an earlier daemon, and schedules expiries. */
  recover(answering: Promise<unknown>): void;
  /** Schedules the expiry of snapshots that arrived with a room. */
  schedule(): void;
  /** The room has ended: deletes the rows of its snapshots; their files are erased with the room. */
  forgetRoom(roomUid: RoomUid): Promise<void>;
  stop(): void;
}

export function makeSnapshots(
  deps: SandboxDeps,
  supervisors: Supervisors,
  places: SnapshotPlaces,
  ends: Pick<Completions, "rolledBack">,
): Snapshots {
  const expiring = new Map<string, SnapshotRow>();
  const expiries = new Deadlines((snapshotId) => {
    const row = expiring.get(snapshotId);
    if (row) void expire(row);
  });
  const schedule = (row: SnapshotRow) => {
    if (row.expires_at === null) return;
    expiring.set(row.snapshot_id, row);
    expiries.set(row.snapshot_id, row.expires_at);
  };
  const scheduleAll = () => {
    for (const row of expiringSnapshots(deps.database.queries)) schedule(row);
  };
  const remove = async (row: SnapshotRow) => {
    const { files } = places.of(row);
    requireAlone(row);
    await deps.database.commit((queries) => {
      places.requireUnused(row.snapshot_id);
      deleteSnapshot(queries, row.snapshot_id);
    });
    expiring.delete(row.snapshot_id);
    expiries.set(row.snapshot_id, null);
    await rm(files.directory, { recursive: true, force: true });
  };
  const expire = async (row: SnapshotRow) => {
    try {
      await remove(row);
      deps.onEvent("snapshot.expired", row, { snapshot_id: row.snapshot_id }, "success");
    } catch (error) {
      deps.log.warn("failed to delete a snapshot", { snapshot_id: row.snapshot_id, error: describeError(error) });
      expiries.setIn(row.snapshot_id, AGAIN_MS);
    }
  };
  return {
    operations: [
      makeSnapshotCreate(deps, supervisors, places, schedule),
      ...makeSnapshotGet(deps, remove),
      makeFork(deps, supervisors, places, schedule),
      makeRollback(deps, supervisors, places, ends),
    ],
    recover: (answering) => {
      scheduleAll();
      const sweep = async () => {
        await answering;
        await sweepSnapshots(deps.paths, deps.database.queries, places);
      };
      sweep().catch((error: unknown) => deps.log.error("failed to sweep snapshots", { error: describeError(error) }));
    },
    schedule: scheduleAll,
    forgetRoom: async (roomUid) => {
      await deps.database.commit((queries) => deleteSnapshotsOf(queries, roomUid));
      for (const { room_uid, snapshot_id } of [...expiring.values()]) {
        if (room_uid !== roomUid) continue;
        expiring.delete(snapshot_id);
        expiries.set(snapshot_id, null);
      }
    },
    stop: () => expiries.clear(),
  };
}

/** Throws snapshot_in_use: a checkpoint's snapshot is deleted with the checkpoint. */
function requireAlone({ checkpoint_id }: SnapshotRow): void {
  if (checkpoint_id === null) return;
  throw new ServiceError("snapshot_in_use", {
    detail: `The snapshot is part of checkpoint ${checkpoint_id}, and is deleted with it.`,
    details: { used_by: [checkpoint_id] },
  });
}
