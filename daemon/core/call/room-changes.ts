/** Wake-ups for clients that follow a room's current state: each is woken after a possible change, so that no client polls. */
import type { RoomUid } from "../../../shared/ids.ts";
import { startTimer } from "../clock.ts";
import type { Notifier, Wait } from "../concurrency/notifier.ts";

const BELL = "now";
/** Commits that name no room, such as of expired requests, are checked for in all rooms at this interval: each check takes a while. */
const ELSEWHERE_MS = 2000;

interface Followed {
  clients: number;
  /** Number of possible changes of the room. */
  changes: number;
}

export class RoomChanges {
  readonly #bells: Notifier;
  readonly #rooms = new Map<RoomUid, Followed>();
  readonly #elsewhereMs: number;
  #looksElsewhere = false;

  constructor(bells: Notifier, elsewhereMs = ELSEWHERE_MS) {
    this.#bells = bells;
    this.#elsewhereMs = elsewhereMs;
    // A room is the group of notifications about its messages and barriers, and the key of those about its audit, which records every call.
    bells.observe((group, key) => {
      if (key === BELL) return;
      this.changed(group as RoomUid);
      if (key !== null) this.changed(key as RoomUid);
    });
  }

  /** Something of the room may have changed: a wait or a command has started or ended, or an agent is gone. */
  changed(roomUid: RoomUid): void {
    const room = this.#rooms.get(roomUid);
    if (!room) return;
    room.changes++;
    this.#bells.ring(roomUid, BELL);
  }

  /** Called after a commit that may concern any room. */
  anyChanged(): void {
    if (this.#rooms.size === 0 || this.#looksElsewhere) return;
    this.#looksElsewhere = true;
    const timer = startTimer(() => {
      this.#looksElsewhere = false;
      for (const roomUid of [...this.#rooms.keys()]) this.changed(roomUid);
    }, this.#elsewhereMs);
    timer.unref();
  }

  /** Counts one more client of the room. */
  enter(roomUid: RoomUid): void {
    const room = this.#rooms.get(roomUid) ?? { clients: 0, changes: 0 };
    room.clients++;
    this.#rooms.set(roomUid, room);
  }

  /** Whether any client remains. */
  leave(roomUid: RoomUid): boolean {
    const room = this.#rooms.get(roomUid);
    if (room && --room.clients > 0) return true;
    this.#rooms.delete(roomUid);
    return false;
  }

  /** Number of clients that follow a room. */
  clients(roomUid: RoomUid): number {
    return this.#rooms.get(roomUid)?.clients ?? 0;
  }

  /** Number of changes of a followed room so far. */
  count(roomUid: RoomUid): number {
    return this.#rooms.get(roomUid)?.changes ?? 0;
  }

  /** Resolves once the room has changed more than `seen` times, or `signal` is aborted. Throws the error that ended the room. */
  async after(roomUid: RoomUid, seen: number, { owner, signal }: Pick<Wait, "owner" | "signal">): Promise<void> {
    const wait = { key: BELL, owner, deadlineMs: Number.POSITIVE_INFINITY, signal };
    await this.#bells.wait(roomUid, wait, () => (this.count(roomUid) > seen ? true : null));
  }
}
