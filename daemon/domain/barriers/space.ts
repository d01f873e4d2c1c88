/**
 * Bounds of a room's barriers: their names, and their bytes. A generation names up to a thousand agents, and a room keeps many: without an end
 * to them one room could fill the host's disk. The counts of each room are cached.
 */
import { MAX_ROOM_BARRIERS, MAX_ROOM_BARRIERS_BYTES } from "../../../shared/api/barriers.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { TransactionMap } from "../../db/transaction-map.ts";
import { bytesOfRoom, countBarriers } from "./store.ts";

export class BarrierSpace {
  readonly #taken: TransactionMap<RoomUid, number>;
  readonly #names: TransactionMap<RoomUid, number>;

  constructor(database: Pick<Database, "undo">) {
    this.#taken = new TransactionMap(database);
    this.#names = new TransactionMap(database);
  }

  /** Caches the count outside of a transaction, so that a refused call does not discard it. */
  countNames(queries: Queries, roomUid: RoomUid): void {
    if (this.#names.get(roomUid) === undefined) this.#names.set(roomUid, countBarriers(queries, roomUid));
  }

  /** Within the transaction that adds a barrier of a new name. Throws quota_exceeded. */
  addName(queries: Queries, roomUid: RoomUid): void {
    const names = this.#names.get(roomUid) ?? countBarriers(queries, roomUid);
    if (names >= MAX_ROOM_BARRIERS) {
      throw new ServiceError("quota_exceeded", {
        detail: `The room has ${MAX_ROOM_BARRIERS} barriers, which is the maximum.`,
      });
    }
    this.#names.set(roomUid, names + 1);
  }

  /** Within the transaction that adds so many bytes, or takes them away. Throws quota_exceeded where there are more then than before. */
  change(queries: Queries, roomUid: RoomUid, bytes: number): void {
    const taken = (this.#taken.get(roomUid) ?? bytesOfRoom(queries, roomUid)) + bytes;
    if (bytes > 0 && taken > MAX_ROOM_BARRIERS_BYTES) {
      throw new ServiceError("quota_exceeded", {
        detail: `The room's barriers, with the names of those who are to arrive, take more than ${MAX_ROOM_BARRIERS_BYTES} bytes with this one.`,
        details: { limit: "barriers", used: taken - bytes, cap: MAX_ROOM_BARRIERS_BYTES },
        hint: "Use names of barriers again, and let a barrier name fewer agents.",
      });
    }
    this.#taken.set(roomUid, taken);
  }

  /** Within a transaction: it has others from here on, or is gone. */
  forget(roomUid: RoomUid): void {
    this.#taken.delete(roomUid);
    this.#names.delete(roomUid);
  }
}
