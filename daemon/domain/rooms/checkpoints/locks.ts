/**
 * Locks for operations on a whole room: it is saved or restored, one operation at a time, or others are made from its checkpoints, several
 * concurrently.
 */
import type { RoomUid } from "../../../../shared/ids.ts";
import { within } from "../../../core/concurrency/published.ts";
import { ServiceError } from "../../../core/service-error.ts";

/** Timeout of `end`: an operation that takes longer needs nothing more of the room. */
const PATIENCE_MS = 10_000;

interface HeldLock {
  what: string;
  isShared: boolean;
  end: AbortController;
  over: Promise<unknown>;
}

export class Locks {
  readonly #held = new Map<RoomUid, Set<HeldLock>>();

  /** `over` is aborted when the room's destruction starts. Throws invalid_state. */
  take<T>(roomUid: RoomUid, operation: string, work: (over: AbortSignal) => Promise<T>): Promise<T> {
    return this.#hold(roomUid, operation, false, work);
  }

  /** The same for operations that only read a checkpoint, concurrently with others that do. */
  share<T>(roomUid: RoomUid, operation: string, work: (over: AbortSignal) => Promise<T>): Promise<T> {
    return this.#hold(roomUid, operation, true, work);
  }

  async #hold<T>(roomUid: RoomUid, operation: string, isShared: boolean, work: (over: AbortSignal) => Promise<T>) {
    const held = this.#held.get(roomUid) ?? new Set();
    const other = [...held].find((each) => !isShared || !each.isShared);
    if (other) {
      throw new ServiceError("invalid_state", {
        detail: `The room is currently being ${other.what}.`,
        hint: "Retry once that is done.",
      });
    }
    const over = Promise.withResolvers<void>();
    const own: HeldLock = { what: operation, isShared, end: new AbortController(), over: over.promise };
    this.#held.set(roomUid, held.add(own));
    try {
      return await work(own.end.signal);
    } finally {
      held.delete(own);
      if (held.size === 0) this.#held.delete(roomUid);
      over.resolve();
    }
  }

  /** The room is being destroyed: aborts its operations. Resolves once they have ended, or after a timeout. */
  async end({ room_uid, room_id }: { room_uid: RoomUid; room_id: string }): Promise<void> {
    const held = [...(this.#held.get(room_uid) ?? [])];
    for (const { end } of held) {
      end.abort(new ServiceError("room_destroying", { detail: `Room ${room_id} is being destroyed.` }));
    }
    const ended = Promise.all(held.map(({ over }) => over));
    await within(ended, PATIENCE_MS, "the operation on the room").catch(() => {});
  }

  isHeld(roomUid: RoomUid): boolean {
    return this.#held.has(roomUid);
  }
}
