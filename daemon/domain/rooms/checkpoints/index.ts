/** Checkpoints of rooms: taking, forking, restoring, expiry and deletion. */
import { checkpointCreate, roomFork, roomRestore } from "../../../../shared/api/checkpoints.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { RoomUid } from "../../../../shared/ids.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { requireActive, requireLive } from "../../../core/call/room-target.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { inUse, requireEnter } from "../create.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { branchingRooms, getRoom, liveRooms } from "../store.ts";
import type { RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { forkRoom, requireSandboxes } from "./fork.ts";
import { makeCheckpointGet, requireCheckpoint } from "./get.ts";
import type { Locks } from "./locks.ts";
import { toCheckpointRecord } from "./record.ts";
import { CheckpointRecovery } from "./recovery.ts";
import { restoreRoom } from "./restore.ts";
import { retire } from "./retired.ts";
import { deleteCheckpoint, deleteCheckpointsOf, expiringCheckpoints } from "./store.ts";
import { sweepCheckpoints } from "./sweep.ts";
import type { CheckpointRow } from "./table.ts";
import { takeCheckpoint } from "./take.ts";

/** Retry delay for a checkpoint that is in use when it expires. */
const AGAIN_MS = 60_000;

export interface Checkpoints {
  operations: Bound[];
  /** Removes leftovers of an earlier daemon, resumes unfinished work, and schedules expiries. */
  recover(answering: Promise<unknown>): void;
  /** The room is being destroyed: aborts operations on it as a whole. Resolves once they have ended, or after a timeout. */
  end(room: Pick<RoomRow, "room_uid" | "room_id">): Promise<void>;
  /** Within a transaction: removes the rows of the room's checkpoints; their files are removed with the room. */
  forget(queries: Queries, roomUid: RoomUid): void;
  /** Schedules the expiry of checkpoints that arrived with a room. */
  schedule(): void;
  stop(): void;
}

interface CheckpointParts {
  deps: RoomDeps;
  records: RoomRecords;
  findRow(call: KeyCall, roomId: string): RoomRow;
  lookup(orgId: RoomRow["org_id"], roomId: string): RoomRow | undefined;
  schedule(row: RoomRow): void;
  locks: Locks;
}

export function makeCheckpoints(parts: CheckpointParts): Checkpoints {
  const { deps, locks } = parts;
  const { database, paths, branch } = deps;
  const expiring = new Map<string, CheckpointRow>();
  const expiries = new Deadlines((checkpointId) => {
    const row = expiring.get(checkpointId);
    if (row) void expire(row);
  });
  const schedule = (row: CheckpointRow) => {
    if (row.expires_at === null) return;
    expiring.set(row.checkpoint_id, row);
    expiries.set(row.checkpoint_id, row.expires_at);
  };
  const scheduleAll = () => {
    for (const row of expiringCheckpoints(database.queries)) schedule(row);
  };
  const drop = (checkpointId: string) => {
    expiring.delete(checkpointId);
    expiries.set(checkpointId, null);
  };
  /** Prevents the deletion of the checkpoint and its snapshots during `work`. */
  const using = <T>({ sandboxes }: CheckpointRow, work: () => Promise<T>) =>
    branch.sandboxes.use(
      sandboxes.map(({ snapshot_id }) => snapshot_id),
      work,
    );
  const unfinished = new CheckpointRecovery({ ...parts, using });
  const remove = async ({ checkpoint_id, room_uid, sandboxes }: CheckpointRow) => {
    await database.commit((queries) => {
      requireDone(branchingRooms(queries), checkpoint_id);
      branch.sandboxes.forget(queries, checkpoint_id);
      deleteCheckpoint(queries, checkpoint_id);
    });
    drop(checkpoint_id);
    await branch.sandboxes.remove(
      room_uid,
      sandboxes.map(({ snapshot_id }) => snapshot_id),
    );
    await eraseDirectory(paths.checkpoint(room_uid, checkpoint_id).directory, deps.giveUpSpace);
  };
  const removeUnused = (row: CheckpointRow) =>
    locks.take(row.room_uid, "separated from a deleted checkpoint", () => remove(row));
  const expire = async (row: CheckpointRow) => {
    try {
      await removeUnused(row);
      deps.onEvent("checkpoint.expired", row, { checkpoint_id: row.checkpoint_id });
    } catch (error) {
      deps.log.warn("failed to delete a checkpoint", { checkpoint_id: row.checkpoint_id, error: describeError(error) });
      expiries.setIn(row.checkpoint_id, AGAIN_MS);
    }
  };
  const find = (call: KeyCall, params: Record<string, string>) => {
    const row = parts.findRow(call, String(params.room_id ?? params.source_room_id));
    call.audit.room_id = row.room_id;
    call.audit.room_uid = row.room_uid;
    return row;
  };

  const create = bind(checkpointCreate, {
    find,
    run: async (call, input, row) => {
      requireSandboxes(call);
      const room = toTarget(row, paths);
      requireActive(room);
      const made = await locks.take(row.room_uid, "saved", (over) => takeCheckpoint(deps, call, room, over, input));
      schedule(made);
      const record = toCheckpointRecord(
        made,
        row.room_id,
        branch.sandboxes.bytesOf(database.queries, made.checkpoint_id),
      );
      const { checkpoint_id, paused_ms, size_bytes, drive_bytes } = record;
      call.audit.details = { checkpoint_id, paused_ms, size_bytes, drive_bytes, sandboxes: made.sandboxes.length };
      return { outcome: "created", body: record };
    },
  });

  const asItIs = async (row: RoomRow) => ({
    room: await parts.records.of(row),
    items: branch.sandboxes.items(toTarget(row, paths)),
  });

  /** The room that an earlier attempt of the same call made without a response. */
  const madeBefore = async ({ work: { begun } }: KeyCall): Promise<OutputOf<typeof roomFork> | null> => {
    if (!begun) return null;
    const row = getRoom(database.queries, String(begun.room_uid) as RoomUid);
    if (row?.state !== "active") return null;
    return { room_id: row.room_id, checkpoint_id: String(begun.checkpoint_id), ...(await asItIs(row)) };
  };

  const forkNow = async (
    call: KeyCall,
    row: RoomRow,
    known: CheckpointRow | null,
    room_id: string,
    over: AbortSignal,
  ) => {
    const checkpoint = known ?? (await takeCheckpoint(deps, call, toTarget(row, paths), over, {}));
    schedule(checkpoint);
    const { checkpoint_id, paused_ms } = checkpoint;
    const made = await using(checkpoint, () => forkRoom(parts, call, row, checkpoint, room_id, over));
    const failed = made.items.filter(({ problem }) => problem !== null).length;
    call.audit.details = { checkpoint_id, into: room_id, into_uid: made.room.room_uid, paused_ms, failed };
    return { outcome: "created" as const, body: { room_id, checkpoint_id, ...made } };
  };

  const fork = bind(roomFork, {
    find,
    run: async (call, { room_id, checkpoint_id }, row) => {
      requireSandboxes(call);
      requireEnter(call, room_id);
      requireLive(toTarget(row, paths));
      const before = await madeBefore(call);
      if (before) return { outcome: "created", body: before };
      const known = checkpoint_id === undefined ? null : requireCheckpoint(deps, row, checkpoint_id);
      if (parts.lookup(row.org_id, room_id)) throw inUse(room_id);
      const work = (over: AbortSignal) => forkNow(call, row, known, room_id, over);
      try {
        return await (known ? locks.share(row.room_uid, "forked", work) : locks.take(row.room_uid, "saved", work));
      } catch (error) {
        unfinished.look();
        throw error;
      }
    },
  });

  const restoreNow = async (call: KeyCall, row: RoomRow, checkpoint: CheckpointRow) => {
    try {
      return await locks.take(row.room_uid, "restored", (over) =>
        using(checkpoint, () => restoreRoom(parts, call, row, checkpoint, over)),
      );
    } catch (error) {
      unfinished.look();
      throw error;
    }
  };

  const restore = bind(roomRestore, {
    find: (call, params) => {
      const row = find(call, params);
      return { row, checkpoint: requireCheckpoint(deps, row, String(params.checkpoint_id)) };
    },
    run: async (call, _input, { row, checkpoint }) => {
      requireSandboxes(call);
      requireLive(toTarget(row, paths));
      const { checkpoint_id } = checkpoint;
      // An earlier attempt of the same call started it, and it was completed since.
      const isDone = call.work.begun?.restored === checkpoint_id && row.branching?.kind !== "restore";
      const restored = isDone ? await asItIs(row) : await restoreNow(call, row, checkpoint);
      const failed = restored.items.filter(({ problem }) => problem !== null).length;
      call.audit.details = { checkpoint_id, sandboxes: restored.items.length, failed };
      return { outcome: "ok", body: restored };
    },
  });

  return {
    operations: [create, fork, restore, ...makeCheckpointGet(deps, find, removeUnused)],
    recover: (answering) => {
      for (const { room_uid, branching } of liveRooms(database.queries)) {
        // Its owner is determined elsewhere.
        if (branching?.kind === "move") continue;
        if (branching !== null) {
          void answering.then(() => unfinished.finish(room_uid));
          continue;
        }
        retire(deps, room_uid).catch((error: unknown) =>
          deps.log.error("failed to retire a room's former drive", { room_uid, error: describeError(error) }),
        );
      }
      scheduleAll();
      sweepCheckpoints(deps, locks).catch((error: unknown) =>
        deps.log.error("failed to sweep checkpoints", { error: describeError(error) }),
      );
    },
    schedule: scheduleAll,
    end: (room) => locks.end(room),
    forget: (queries, roomUid) => {
      deleteCheckpointsOf(queries, roomUid);
      for (const { room_uid, checkpoint_id } of [...expiring.values()]) if (room_uid === roomUid) drop(checkpoint_id);
    },
    stop: () => {
      expiries.clear();
      unfinished.stop();
    },
  };
}

/** Throws snapshot_in_use if a room is being made from the checkpoint, or restored to it. */
function requireDone(branching: readonly RoomRow[], checkpointId: string): void {
  const [room] = branching.filter(
    (row) => row.branching !== null && row.branching.kind !== "move" && row.branching.checkpoint_id === checkpointId,
  );
  if (!room) return;
  throw new ServiceError("snapshot_in_use", {
    detail: `Room ${room.room_id} is currently being created from the checkpoint.`,
    details: { used_by: [room.room_id] },
    hint: "Retry once that is done.",
    retryAfterSeconds: 5,
  });
}
