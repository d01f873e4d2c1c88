/**
 * Bounds of a room's barriers: number of names, and bytes. A generation has up to a thousand agents and a room keeps many generations, so
 * without bounds one room could fill the host's disk. The counts of each room are cached.
 */
import { MAX_ROOM_BARRIERS, MAX_ROOM_BARRIERS_BYTES } from "../../../shared/api/barriers.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { PieceTurns } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { TransactionMap } from "../../db/transaction-map.ts";
import { type CountedUpTo, countSome, ROOM_START } from "./store.ts";

/** Generations counted by one statement, which takes half a millisecond. */
const COUNTED_TOGETHER = 2_048;

interface Counts {
  names: number;
  bytes: number;
}

interface Counting {
  over: Promise<void>;
}

export class BarrierSpace {
  readonly #counts: TransactionMap<RoomUid, Counts>;
  /** Counts in progress; a count that was removed from the map has missed a change. */
  readonly #counting = new Map<RoomUid, Counting>();

  constructor(database: Pick<Database, "undo">) {
    this.#counts = new TransactionMap(database);
  }

  /** Counts a room's barriers in pieces, before the transaction that adds one; null if the counts are cached. */
  count(queries: Queries, roomUid: RoomUid, pieces: PieceTurns): Promise<void> | null {
    if (this.#counts.get(roomUid)) return null;
    const known = this.#counting.get(roomUid);
    if (known) return known.over;
    const counting: Counting = { over: Promise.resolve() };
    this.#counting.set(roomUid, counting);
    counting.over = this.#count(queries, roomUid, pieces, counting);
    return counting.over;
  }

  async #count(queries: Queries, roomUid: RoomUid, pieces: PieceTurns, counting: Counting): Promise<void> {
    const isCurrent = () => this.#counting.get(roomUid) === counting;
    try {
      const counts = { names: 0, bytes: 0 };
      for (let after: CountedUpTo | null = ROOM_START; after !== null; ) {
        const turn = pieces.next();
        if (turn) await turn;
        after = addSome(counts, queries, roomUid, after);
      }
      if (isCurrent()) this.#counts.set(roomUid, counts);
    } finally {
      if (isCurrent()) this.#counting.delete(roomUid);
    }
  }

  /** Within the transaction that adds a barrier of a new name. Throws quota_exceeded. */
  addName(queries: Queries, roomUid: RoomUid): void {
    const { names, bytes } = this.#of(queries, roomUid);
    if (names >= MAX_ROOM_BARRIERS) {
      throw new ServiceError("quota_exceeded", {
        detail: `The room has ${MAX_ROOM_BARRIERS} barriers, which is the maximum.`,
      });
    }
    this.#counts.set(roomUid, { names: names + 1, bytes });
  }

  /**
   * Within the transaction that adds this many bytes, or removes them if negative. Throws quota_exceeded if bytes are added and the sum
   * exceeds the limit.
   */
  change(queries: Queries, roomUid: RoomUid, bytes: number): void {
    const { names, bytes: before } = this.#of(queries, roomUid);
    const taken = before + bytes;
    if (bytes > 0 && taken > MAX_ROOM_BARRIERS_BYTES) {
      throw new ServiceError("quota_exceeded", {
        detail: `With this barrier the room's barriers and the names of their participants take more than ${MAX_ROOM_BARRIERS_BYTES} bytes.`,
        details: { limit: "barriers", used: before, cap: MAX_ROOM_BARRIERS_BYTES },
        hint: "Reuse barrier names, and name fewer agents in a barrier.",
      });
    }
    this.#counts.set(roomUid, { names, bytes: taken });
  }

  /** Within a transaction: the room's barriers were replaced, or the room was removed. */
  forget(roomUid: RoomUid): void {
    this.#counts.delete(roomUid);
    this.#counting.delete(roomUid);
  }

  /** Within a transaction. Counts now if a room was replaced after its counts were cached. */
  #of(queries: Queries, roomUid: RoomUid): Counts {
    const known = this.#counts.get(roomUid);
    if (known) return known;
    this.#counting.delete(roomUid);
    const counts = { names: 0, bytes: 0 };
    for (let after: CountedUpTo | null = ROOM_START; after !== null; ) after = addSome(counts, queries, roomUid, after);
    return counts;
  }
}

/** Adds a batch of the generations after `after`; returns the last of the batch, null at the end. */
function addSome(counts: Counts, queries: Queries, roomUid: RoomUid, after: CountedUpTo): CountedUpTo | null {
  const { names, bytes, upTo } = countSome(queries, roomUid, after, COUNTED_TOGETHER);
  counts.names += names;
  counts.bytes += bytes;
  return upTo;
}
