/** Owns checkpoints of rooms: taking them, what is made of them, and how they end. */
import { checkpointCreate, roomFork, roomRestore } from "../../../../shared/api/checkpoints.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { RoomUid } from "../../../../shared/ids.ts";
import { Deadlines } from "../../../core/deadlines.ts";
import { type Bound, bind, type KeyCall, trialCall } from "../../../core/operation.ts";
import { requireActive } from "../../../core/room-target.ts";
import { describeError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { inUse, requireEnter } from "../create.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { getRoom, liveRooms } from "../store.ts";
import type { Branching, RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { takeCheckpoint } from "./cut.ts";
import { forkRoom, requireSandboxes } from "./fork.ts";
import { makeCheckpointGet, requireCheckpoint } from "./get.ts";
import { Locks } from "./locks.ts";
import { toCheckpointRecord } from "./record.ts";
import { removeTurned, restoreRoom } from "./restore.ts";
import { deleteCheckpoint, deleteCheckpointsOf, expiringCheckpoints } from "./store.ts";
import { sweepCheckpoints } from "./sweep.ts";
import type { CheckpointRow } from "./table.ts";

const UNBOUND = { room_ids: null, agent_id: null, expires_at: null };
/** One that is in use when it ends by itself. */
const AGAIN_MS = 60_000;

export interface Checkpoints {
  operations: Bound[];
  /** Removes what an earlier daemon left half done, and goes on with what ends by itself. */
  recover(answering: Promise<unknown>): void;
  /** The room is being destroyed: what is done with it as a whole is given up. Resolves once it has ended, or takes long. */
  end(room: Pick<RoomRow, "room_uid" | "room_id">): Promise<void>;
  /** Within a transaction: the room's checkpoints are none any more; their files go with it. */
  forget(queries: Queries, roomUid: RoomUid): void;
  /** Whether something is done with the room as a whole. */
  isBusy(roomUid: RoomUid): boolean;
  stop(): void;
}

interface Parts {
  deps: RoomDeps;
  records: RoomRecords;
  findRow(call: KeyCall, roomId: string): RoomRow;
  lookup(orgId: RoomRow["org_id"], roomId: string): RoomRow | undefined;
  schedule(row: RoomRow): void;
}

export function makeCheckpoints(parts: Parts): Checkpoints {
  const { deps } = parts;
  const { database, paths, branch } = deps;
  const locks = new Locks();
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
  const drop = (checkpointId: string) => {
    expiring.delete(checkpointId);
    expiries.set(checkpointId, null);
  };
  const remove = async ({ checkpoint_id, room_uid, sandboxes }: CheckpointRow) => {
    await database.commit((queries) => {
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
    locks.take(row.room_uid, "left by one of its checkpoints", () => remove(row));
  const expire = async (row: CheckpointRow) => {
    try {
      await removeUnused(row);
      deps.onEvent("checkpoint.expired", row, { checkpoint_id: row.checkpoint_id });
    } catch (error) {
      deps.log.warn("checkpoint not deleted", { checkpoint_id: row.checkpoint_id, error: describeError(error) });
      expiries.set(row.checkpoint_id, new Date(Date.now() + AGAIN_MS).toISOString());
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

  /** What the same call has made before, though it was not answered. */
  const madeBefore = async ({ work: { begun } }: KeyCall): Promise<OutputOf<typeof roomFork> | null> => {
    if (!begun) return null;
    const row = getRoom(database.queries, String(begun.room_uid) as RoomUid);
    if (row?.state !== "active" || row.branching !== null) return null;
    const room = await parts.records.of(row);
    const items = branch.sandboxes.items(toTarget(row, paths));
    return { room_id: row.room_id, room, checkpoint_id: String(begun.checkpoint_id), items };
  };

  const fork = bind(roomFork, {
    find,
    run: async (call, { room_id, checkpoint_id }, row) => {
      requireSandboxes(call);
      requireEnter(call, room_id);
      const room = toTarget(row, paths);
      requireActive(room);
      const before = await madeBefore(call);
      if (before) return { outcome: "created", body: before };
      const known = checkpoint_id === undefined ? null : requireCheckpoint(deps, row, checkpoint_id);
      if (parts.lookup(row.org_id, room_id)) throw inUse(room_id);
      return await locks.take(row.room_uid, known ? "made into another" : "saved", async (over) => {
        const checkpoint = known ?? (await takeCheckpoint(deps, call, room, over, {}));
        schedule(checkpoint);
        const ids = checkpoint.sandboxes.map(({ snapshot_id }) => snapshot_id);
        const { room: made, items } = await branch.sandboxes.use(ids, () =>
          forkRoom(parts, call, row, checkpoint, room_id, over),
        );
        const failed = items.filter(({ sandbox }) => sandbox === null).length;
        const { checkpoint_id, paused_ms } = checkpoint;
        call.audit.details = { checkpoint_id, into: room_id, into_uid: made.room_uid, paused_ms, failed };
        return { outcome: "created", body: { room_id, room: made, checkpoint_id, items } };
      });
    },
  });

  const restoreNow = (call: KeyCall, row: RoomRow, checkpoint: CheckpointRow) =>
    locks.take(row.room_uid, "turned back", (over) =>
      branch.sandboxes.use(
        checkpoint.sandboxes.map(({ snapshot_id }) => snapshot_id),
        () => restoreRoom(parts, call, row, checkpoint, over),
      ),
    );

  const restore = bind(roomRestore, {
    find: (call, params) => {
      const row = find(call, params);
      return { row, checkpoint: requireCheckpoint(deps, row, String(params.checkpoint_id)) };
    },
    run: async (call, _input, { row, checkpoint }) => {
      requireSandboxes(call);
      requireActive(toTarget(row, paths));
      const restored = await restoreNow(call, row, checkpoint);
      const failed = restored.items.filter(({ sandbox }) => sandbox === null).length;
      call.audit.details = { checkpoint_id: checkpoint.checkpoint_id, sandboxes: restored.items.length, failed };
      return { outcome: "ok", body: restored };
    },
  });

  /** A daemon before this one has not come to the end of it. */
  const goOn = async (row: RoomRow, { checkpoint_id, key_id }: Branching) => {
    await branch.sandboxes.untilAtRest(row.room_uid);
    const caller = { ...{ org_id: row.org_id, key_id, name: "", plan: "", scopes: [] }, ...UNBOUND };
    const checkpoint = requireCheckpoint(deps, row, checkpoint_id);
    await restoreNow(trialCall(caller), row, checkpoint);
    deps.onEvent("room.restored", row, { checkpoint_id, taken_up: true });
  };

  return {
    operations: [create, fork, restore, ...makeCheckpointGet(deps, find, removeUnused)],
    recover: (answering) => {
      for (const row of liveRooms(database.queries)) {
        if (row.branching?.kind !== "restore" || row.state !== "active") {
          removeTurned(deps, row.room_uid).catch(() => {});
          continue;
        }
        const { branching } = row;
        answering
          .then(() => goOn(row, branching))
          .catch((error: unknown) =>
            deps.log.error("room not turned back", { room_uid: row.room_uid, error: describeError(error) }),
          );
      }
      for (const row of expiringCheckpoints(database.queries)) schedule(row);
      sweepCheckpoints(deps, locks).catch((error: unknown) =>
        deps.log.error("checkpoints not swept", { error: describeError(error) }),
      );
    },
    end: (room) => locks.end(room),
    forget: (queries, roomUid) => {
      deleteCheckpointsOf(queries, roomUid);
      for (const { room_uid, checkpoint_id } of [...expiring.values()]) if (room_uid === roomUid) drop(checkpoint_id);
    },
    isBusy: (roomUid) => locks.isHeld(roomUid),
    stop: () => expiries.clear(),
  };
}
