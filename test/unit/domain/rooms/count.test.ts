/** The number of an organization's live rooms, which every creation of a room or sandbox needs. */
import { expect, test } from "vitest";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { countRooms } from "../../../../daemon/domain/rooms/index.ts";
import { threadTime } from "../../../../daemon/host/thread-time.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { insertRow } from "../../../harness/durability/insert-row.ts";
import { boundOf } from "../../../harness/event-loop/longest-turn.ts";

const ORG = "org_1" as OrgId;
/** As many as stay listed. */
const ENDED = 10_000;
const TIMES = 20;
/** A scan of each ended room takes 20 to 30. */
const MAX_MS = 2;

test("is found without reading rooms that have ended", async () => {
  const connection = openConnection(":memory:");
  migrate(connection);
  const database = makeDatabase(connection);
  connection.execute("PRAGMA foreign_keys = OFF");
  for (let n = 0; n < ENDED + 3; n++) {
    const room = { room_uid: `rom_${n}`, room_id: `r${n}`, org_id: ORG, labels: "x".repeat(2_000) };
    insertRow(connection, database, "rooms", { ...room, state: n < ENDED ? "destroyed" : "active" });
  }
  expect(countRooms(database.queries, ORG)).toBe(3);
  const before = threadTime();
  for (let n = 0; n < TIMES; n++) countRooms(database.queries, ORG);
  const ms = (threadTime() - before) / TIMES;
  console.log(`${ms.toFixed(2)} ms`);
  expect(ms).toBeLessThan(boundOf(MAX_MS));
  await database.close();
});
