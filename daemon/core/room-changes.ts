/** Rooms whose current state clients follow: each client is woken after a possible change, so that no client polls. */
import type { RoomUid } from "../../shared/ids.ts";
import type { Bells } from "./bells.ts";

const BELL = "now";

interface Followed {
  clients: number;
  /** How often something of the room may have changed. */
  changes: number;
}

export class RoomChanges {
  readonly #bells: Bells;
  readonly #rooms = new Map<RoomUid, Followed>();

  constructor(bells: Bells) {
    this.#bells = bells;
  }

  /** Something of the room may have changed: a wait or a command has begun or ended, or an agent is gone. */
  changed(roomUid: RoomUid): void {
    const room = this.#rooms.get(roomUid);
    if (!room) return;
    room.changes++;
    this.#bells.ring(roomUid, BELL);
  }

  /** After a commit, of any room. */
  anyChanged(): void {
    for (const roomUid of [...this.#rooms.keys()]) this.changed(roomUid);
  }

  /** For one client more or less. */
  enter(roomUid: RoomUid): void {
    const room = this.#rooms.get(roomUid) ?? { clients: 0, changes: 0 };
    room.clients++;
    this.#rooms.set(roomUid, room);
  }

  /** Whether any client is left. */
  leave(roomUid: RoomUid): boolean {
    const room = this.#rooms.get(roomUid);
    if (room && --room.clients > 0) return true;
    this.#rooms.delete(roomUid);
    return false;
  }

  /** How many clients follow a room. */
  clients(roomUid: RoomUid): number {
    return this.#rooms.get(roomUid)?.clients ?? 0;
  }

  /** Changes of a followed room so far. */
  count(roomUid: RoomUid): number {
    return this.#rooms.get(roomUid)?.changes ?? 0;
  }

  /** Resolves once the room has changed more than `seen` times, or `signal` is given. Throws the error that ended the room. */
  async after(roomUid: RoomUid, seen: number, signal: AbortSignal): Promise<void> {
    const wait = { key: BELL, deadlineMs: Number.POSITIVE_INFINITY, signal };
    await this.#bells.wait(roomUid, wait, () => (this.count(roomUid) > seen ? true : null));
  }
}
