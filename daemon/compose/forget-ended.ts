/** Deletes ended rooms and sandboxes with all rows that refer to them, a few per commit. */
import type { RoomUid } from "../../shared/ids.ts";
import { loopTime, Pieces } from "../core/loop/index.ts";
import type { Database } from "../db/transact.ts";
import { forgetTraffic } from "../domain/egress/index.ts";
import { listEveryOrg } from "../domain/orgs/index.ts";
import { forgetPorts } from "../domain/ports/index.ts";
import { forgetRoom, roomsToForget } from "../domain/rooms/index.ts";
import { endedLongAgo, endedWithRooms, forgetSandbox } from "../domain/sandboxes/index.ts";
import { forgetAccesses } from "../domain/ssh/index.ts";

/** Deletes sandboxes that no query can return any more, and rooms that ended before a moment (RFC 3339) or are not among the newest. */
export async function forgetEnded(database: Database, before: string): Promise<void> {
  const { queries } = database;
  for (const find of [endedWithRooms, endedLongAgo]) {
    for (let ended = find(queries); ended.length > 0; ended = find(queries)) {
      const some = ended;
      await database.commit((within) => {
        for (const sandboxId of some) {
          for (const forget of [forgetPorts, forgetAccesses, forgetTraffic, forgetSandbox]) forget(within, sandboxId);
        }
      });
    }
  }
  const pieces = new Pieces(loopTime, "host", "retention");
  for (const { org_id } of listEveryOrg(queries)) {
    await pieces.turn();
    while (await forgetSome(database, roomsToForget(queries, org_id, before)));
  }
}

/** Whether at least one of these rooms was forgotten, so that more may remain. */
async function forgetSome(database: Database, rooms: readonly RoomUid[]): Promise<boolean> {
  const forgetting = rooms.map((roomUid) => database.commit((queries) => forgetRoom(queries, roomUid)));
  const outcomes = await Promise.allSettled(forgetting);
  return outcomes.some(({ status }) => status === "fulfilled");
}
