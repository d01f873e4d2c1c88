/** Maps seqs of a host's chain to numbers of a room's events; the rule is in room-numbers.ts. Has no state: reader threads use it too. */
import { asc, eq } from "drizzle-orm";
import type { Queries } from "../../db/client.ts";
import { roomStays } from "./table.ts";

export type Stay = Omit<typeof roomStays.$inferSelect, "room_uid">;

/** Stays in the order of the chain. */
export function staysOf(queries: Queries, roomUid: string): Stay[] {
  const { seq, id, since } = roomStays;
  return queries
    .select({ seq, id, since })
    .from(roomStays)
    .where(eq(roomStays.room_uid, roomUid))
    .orderBy(asc(roomStays.seq))
    .all();
}

/** The room's number of a record of the chain. */
export function numberOf(stays: readonly Stay[], seq: number): number {
  const stay = stays.findLast((each) => each.seq < seq);
  return stay ? stay.id + seq - stay.seq : seq;
}
