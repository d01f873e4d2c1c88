/** Sequence numbers of a room's messages. The cache never differs from the table. */
import type { RoomUid } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { TransactionMap } from "../../db/transaction-map.ts";
import { lastSeq } from "./store.ts";

export class Sequence {
  readonly #last: TransactionMap<RoomUid, number>;

  constructor(database: Pick<Database, "undo">) {
    this.#last = new TransactionMap(database);
  }

  /** Within the transaction that stores a message with the returned seq. */
  next(queries: Queries, roomUid: RoomUid): number {
    const seq = this.coming(queries, roomUid);
    this.#last.set(roomUid, seq);
    return seq;
  }

  /** The seq of the next message. */
  coming(queries: Queries, roomUid: RoomUid): number {
    return (this.#last.get(roomUid) ?? lastSeq(queries, roomUid)) + 1;
  }

  /** The room is gone. */
  forget(roomUid: RoomUid): void {
    this.#last.delete(roomUid);
  }
}
