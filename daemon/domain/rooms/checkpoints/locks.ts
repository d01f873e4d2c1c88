/** Owns that one thing at a time is done with a room as a whole: it is saved, turned back, or another is made of it. */
import type { RoomUid } from "../../../../shared/ids.ts";
import { within } from "../../../core/published.ts";
import { ServiceError } from "../../../core/service-error.ts";

/** What goes on longer needs nothing more of the room. */
const PATIENCE_MS = 10_000;

export class Locks {
  readonly #held = new Map<RoomUid, { what: string; end: AbortController; over: Promise<unknown> }>();

  /** `over` is aborted when the room is being destroyed. Throws invalid_state. */
  async take<T>(roomUid: RoomUid, what: string, work: (over: AbortSignal) => Promise<T>): Promise<T> {
    const other = this.#held.get(roomUid);
    if (other) {
      throw new ServiceError("invalid_state", {
        detail: `The room is just being ${other.what}.`,
        hint: "Try again once that is done.",
        retryAfterSeconds: 5,
      });
    }
    const end = new AbortController();
    const over = Promise.withResolvers<void>();
    this.#held.set(roomUid, { what, end, over: over.promise });
    try {
      return await work(end.signal);
    } finally {
      this.#held.delete(roomUid);
      over.resolve();
    }
  }

  /** The room is being destroyed: what is under way is given up. Resolves once it has ended, or does not end soon. */
  async end({ room_uid, room_id }: { room_uid: RoomUid; room_id: string }): Promise<void> {
    const held = this.#held.get(room_uid);
    if (!held) return;
    held.end.abort(new ServiceError("room_destroying", { detail: `Room ${room_id} is being destroyed.` }));
    await within(held.over, PATIENCE_MS, "what was done with the room").catch(() => {});
  }

  isHeld(roomUid: RoomUid): boolean {
    return this.#held.has(roomUid);
  }
}
