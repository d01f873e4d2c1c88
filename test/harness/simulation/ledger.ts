/** Answers to clients of a simulation, the host of each write, and the invariants of both. */
import type { RoomUid } from "../../../shared/ids.ts";
import type { Asked, Done } from "./daemon.ts";
import type { SimulatedHost } from "./host.ts";

interface Acknowledged {
  at: number;
  host: string;
  /** Of a host and its copy, by which. */
  data: string;
}

export interface KnownRoom {
  room_uid: RoomUid;
  room_id: string;
  madeAt: number;
  /** Durable messages, by their host. */
  acknowledged: Map<string, Acknowledged>;
  /** Whether a host has begun to destroy it. */
  mayBeDestroyed: boolean;
  /** By which host it took writes, by epoch, and since when. */
  writers: Map<number, Acknowledged>;
  /** Why it, or some of it, may be lost; null: it may not. */
  lostBy: string | null;
}

export class Ledger {
  readonly rooms = new Map<RoomUid, KnownRoom>();
  /** Rooms by the Idempotency-Key of the call that made them. */
  readonly #made = new Map<string, RoomUid>();
  readonly #violate: (violation: string) => void;
  readonly #now: () => number;
  /** Rooms of hosts that were removed, and why they are lost: of some no write is known yet. */
  readonly #removed = new Map<RoomUid, string>();
  /** Keys that were granted, and have to be there while the directory forgets nothing. */
  readonly granted = new Set<string>();
  /** Keys that were revoked, with the data that have a tombstone of them. */
  readonly revoked = new Map<string, Acknowledged>();
  /** The newest epoch of each room that the directory has ever had. */
  readonly #epochs = new Map<RoomUid, number>();
  /** The directory forgets no calls. */
  callsHold = true;

  constructor(now: () => number, violate: (violation: string) => void) {
    this.#now = now;
    this.#violate = violate;
  }

  #room(room_uid: RoomUid, room_id: string): KnownRoom {
    const known = this.rooms.get(room_uid);
    if (known) return known;
    const room: KnownRoom = {
      ...{ room_uid, room_id, madeAt: this.#now(), acknowledged: new Map(), mayBeDestroyed: false },
      ...{ writers: new Map(), lostBy: this.#removed.get(room_uid) ?? null },
    };
    this.rooms.set(room_uid, room);
    return room;
  }

  /** A host has made a write durable. Writes of a former host may be lost. `isKnown`: the directory has a newer epoch, or has forgotten nothing. */
  accepted(request: Asked, { room_uid, epoch }: Done, by: SimulatedHost, isHolder: boolean, isKnown: boolean): void {
    const host = by.member.host_id;
    const room = this.#room(room_uid, request.room_id);
    if (request.does === "create" && request.idempotency_key !== undefined)
      this.#madeBy(request.idempotency_key, room_uid);
    if (room.lostBy !== null) return;
    const other = room.writers.get(epoch);
    if (other && other.host !== host)
      this.#violate(`${room_uid} took writes on ${other.host} and on ${host} in epoch ${epoch}`);
    const newest = Math.max(epoch, ...room.writers.keys());
    // A host that was set back may have a room again that has ended elsewhere.
    const isOld = newest > epoch && !room.mayBeDestroyed;
    if ((isOld || (this.#epochs.get(room_uid) ?? 0) > epoch) && !isKnown) {
      room.lostBy = "the directory and a host forgot its move";
      return;
    }
    if (isOld) this.#violate(`${room_uid} took a write in epoch ${epoch} on ${host}, after one in ${newest}`);
    if (!isHolder) return;
    if (!other) room.writers.set(epoch, { at: this.#now(), host, data: by.name });
    if (request.does === "send") room.acknowledged.set(request.message_id, { at: this.#now(), host, data: by.name });
  }

  placed(room_uid: RoomUid, epoch: number): void {
    this.#epochs.set(room_uid, Math.max(epoch, this.#epochs.get(room_uid) ?? 0));
  }

  #madeBy(key: string, room_uid: RoomUid): void {
    const other = this.#made.get(key);
    if (other !== undefined && other !== room_uid && this.callsHold)
      this.#violate(`the calls with Idempotency-Key ${key} made ${other} and ${room_uid}`);
    this.#made.set(key, room_uid);
  }

  revokedOn(id: string, { member, name }: SimulatedHost): void {
    this.revoked.set(id, { at: this.#now(), host: member.host_id, data: name });
  }

  /** Rooms that a call with an Idempotency-Key has made, and that may have ended: the call may be repeated. */
  get repeatable(): { idempotency_key: string; room_id: string }[] {
    return [...this.#made].flatMap(([idempotency_key, room_uid]) => {
      const room = this.rooms.get(room_uid);
      return room?.mayBeDestroyed ? [{ idempotency_key, room_id: room.room_id }] : [];
    });
  }

  /** When these data took the first writes for rooms that are on other hosts since. */
  hadAt(data: string): { room_uid: RoomUid; at: number }[] {
    return [...this.rooms.values()].flatMap(({ room_uid, writers, mayBeDestroyed, lostBy }) => {
      const [last, former] = [...writers.values()].reverse();
      const hasLeft = former?.data === data && last?.data !== data;
      return former && hasLeft && !mayBeDestroyed && lostBy === null ? [{ room_uid, at: former.at }] : [];
    });
  }

  /** From here on it may end, whatever becomes of the call. */
  destroys({ room_id }: Asked, { room_uid }: Done): void {
    this.#room(room_uid, room_id).mayBeDestroyed = true;
  }

  lose(filter: (room: KnownRoom) => boolean, why: string): void {
    for (const room of this.rooms.values()) if (filter(room)) room.lostBy ??= why;
  }

  /** With the rooms that the directory had placed there; if that was set back, also with all that it was the last to write to. */
  removeHost(host: string, placed: readonly RoomUid[], isWhole: boolean): void {
    const why = `${host} was removed`;
    for (const room_uid of placed) this.#removed.set(room_uid, why);
    const isLast = ({ writers }: KnownRoom) => !isWhole && [...writers.values()].at(-1)?.host === host;
    this.lose((room) => this.#removed.has(room.room_uid) || isLast(room), why);
    for (const [id, by] of this.revoked) if (by.host === host) this.revoked.delete(id);
  }

  /** Data of a host are as they were at a moment: later rows of rooms are lost. `owned`: its rooms by the directory. */
  setBack(data: string, to: number, owned: ReadonlySet<RoomUid>): void {
    for (const [id, by] of this.revoked) if (by.data === data && by.at > to) this.revoked.delete(id);
    for (const room of this.rooms.values()) {
      const last = [...room.writers.values()].at(-1);
      const isHere = owned.has(room.room_uid) || (last?.data === data && room.lostBy === null);
      // It may have left and come back without a write in its newest epochs.
      const hasMoved = (this.#epochs.get(room.room_uid) ?? 0) > Math.max(0, ...room.writers.keys());
      // It came after that moment, and is nowhere now.
      const isNewer = room.madeAt > to || (last && last.at > to) || last?.data !== data || hasMoved;
      if (isHere && isNewer) room.lostBy ??= "set back";
      for (const [message, { at, data: by }] of room.acknowledged)
        if (by === data && at > to) room.acknowledged.delete(message);
    }
  }
}
