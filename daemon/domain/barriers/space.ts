/**
 * Owns how many bytes the barriers of a room may take. A generation names up to a thousand agents, and a room keeps many: without an end
 * to them one room could fill the host's disk. What each room has is summed once, and remembered.
 */
import { MAX_ROOM_BARRIERS_BYTES } from "../../../shared/api/barriers.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { TransactionMap } from "../../db/transaction-map.ts";
import { bytesOfRoom } from "./store.ts";

export class BarrierSpace {
  readonly #taken: TransactionMap<RoomUid, number>;

  constructor(database: Pick<Database, "undo">) {
    this.#taken = new TransactionMap(database);
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
  }
}
