/**
 * Completes unfinished forks and restores of rooms: the work that a failed call or a previous daemon left is resumed, with retries until it
 * is done or the room no longer exists.
 */
import type { RoomUid } from "../../../../shared/ids.ts";
import { trialCall } from "../../../core/call/operation.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { branchingRooms, getRoom, updateRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import type { Locks } from "./locks.ts";
import { restoreRoom } from "./restore.ts";
import { startRoom } from "./start.ts";
import { getCheckpoint } from "./store.ts";
import type { CheckpointRow } from "./table.ts";

const FIRST_MS = 5_000;
const AGAIN_MS = 60_000;
const UNBOUND = { room_ids: null, agent_id: null, expires_at: null };

interface RecoveryParts {
  deps: RoomDeps;
  records: RoomRecords;
  locks: Locks;
  /** Prevents the deletion of the checkpoint during `work`. */
  using<T>(checkpoint: CheckpointRow, work: () => Promise<T>): Promise<T>;
}

export class CheckpointRecovery {
  readonly #parts: RecoveryParts;
  readonly #due = new Deadlines((roomUid) => void this.finish(roomUid as RoomUid));

  constructor(parts: RecoveryParts) {
    this.#parts = parts;
  }

  /** A call has failed: schedules the completion of the work that it started. */
  look(): void {
    for (const { room_uid, branching } of branchingRooms(this.#parts.deps.database.queries)) {
      if (branching?.kind !== "move") this.#later(room_uid, FIRST_MS);
    }
  }

  /** Completes a room's work now, or retries later if that fails. Never rejects. */
  async finish(roomUid: RoomUid): Promise<void> {
    const { deps, locks } = this.#parts;
    if (locks.isHeld(roomUid)) return this.#later(roomUid, FIRST_MS);
    try {
      await deps.branch.sandboxes.untilAtRest(roomUid);
      await locks.take(roomUid, "recovered", (over) => this.#finishNow(roomUid, over));
    } catch (error) {
      deps.log.error("failed to finish the fork or restore of a room; will retry", {
        room_uid: roomUid,
        error: describeError(error),
      });
      const soonSeconds = error instanceof ServiceError ? error.options.retryAfterSeconds : null;
      this.#later(roomUid, soonSeconds ? soonSeconds * 1000 : AGAIN_MS);
    }
  }

  stop(): void {
    this.#due.clear();
  }

  #later(roomUid: RoomUid, ms: number): void {
    this.#due.setIn(roomUid, ms);
  }

  async #finishNow(roomUid: RoomUid, over: AbortSignal): Promise<void> {
    const { deps, using } = this.#parts;
    const { queries } = deps.database;
    const row = getRoom(queries, roomUid);
    if (row?.state !== "active" || row.branching === null || row.branching.kind === "move") return;
    const { kind, checkpoint_id, key_id, as = {} } = row.branching;
    const checkpoint = getCheckpoint(queries, row.org_id, checkpoint_id);
    if (!checkpoint) return await this.#giveUp(row, checkpoint_id);
    const call = trialCall({ org_id: row.org_id, key_id, name: "", plan: "", scopes: [], ...UNBOUND });
    await using(checkpoint, () =>
      kind === "restore"
        ? restoreRoom(this.#parts, call, row, checkpoint, over)
        : startRoom(this.#parts, call, row, checkpoint, new Map(Object.entries(as))),
    );
    // The creation of a room is recorded together with its row.
    if (checkpoint.room_uid === roomUid) deps.onEvent("room.restored", row, { checkpoint_id, taken_up: true });
  }

  /** The room of the checkpoint has ended: the parts that exist remain as they are. */
  async #giveUp({ room_uid }: RoomRow, checkpoint_id: string): Promise<void> {
    const { log, database } = this.#parts.deps;
    log.error("the checkpoint of an unfinished room is gone", { room_uid, checkpoint_id });
    await database.commit((queries) => updateRoom(queries, room_uid, { branching: null }));
  }
}
