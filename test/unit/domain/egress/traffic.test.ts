/** Traffic of a sandbox: a row while the sandbox exists, and the usage of its organization, which remains. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { Networks } from "../../../../daemon/domain/egress/networks.ts";
import { trafficOf } from "../../../../daemon/domain/egress/store.ts";
import { Tally } from "../../../../daemon/domain/egress/tally.ts";
import type { Consumer } from "../../../../daemon/domain/orgs/index.ts";
import { isKept } from "../../../../daemon/domain/sandboxes/index.ts";
import type { SandboxId } from "../../../../shared/ids.ts";
import { insertRow } from "../../../harness/durability/insert-row.ts";

const THERE = "sbx_there" as SandboxId;
const FORGOTTEN = "sbx_forgotten" as SandboxId;
const PLACE = { org_id: "org_1", room_uid: "rom_1" } as Consumer;
const MORE = { sent_bytes: 5, received_bytes: 7, connections: 1 };

let connection: Connection;
let database: Database;
let metered: number;
let tally: Tally;
let commits: number;
/** Commits wait for it. */
let disk: Promise<void> | null;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  insertRow(connection, database, "orgs", { org_id: "org_1" });
  insertRow(connection, database, "rooms", { room_uid: "rom_1", org_id: "org_1", state: "active" });
  const row = { room_uid: "rom_1", org_id: "org_1", state: "destroyed", egress_mode: "none", guest_cid: 9100 };
  insertRow(connection, database, "sandboxes", { ...row, sandbox_id: THERE });
  metered = 0;
  const meter = {
    count: (_: Consumer, { egress_bytes = 0 }: { egress_bytes?: number }) => {
      metered += egress_bytes;
    },
  };
  commits = 0;
  disk = null;
  const slow: Database = {
    ...database,
    commit: async (...write) => {
      commits++;
      await disk;
      return await database.commit(...write);
    },
  };
  tally = new Tally({ database: slow, log: makeLog("error", () => {}), meter, isKept }, new Networks(database.queries));
});
afterEach(() => database.close());

test("a sandbox's bytes are added to its row; those of a deleted one are only metered", async () => {
  for (const more of [MORE, MORE]) {
    for (const sandbox of [THERE, FORGOTTEN]) tally.count(sandbox, PLACE, more);
    expect(tally.of(FORGOTTEN)).toEqual(MORE);
    await tally.write();
  }
  expect(trafficOf(database.queries, THERE)).toEqual({ sent_bytes: 10, received_bytes: 14, connections: 2 });
  expect(database.queries.all("SELECT sandbox_id FROM egress_usage")).toEqual([{ sandbox_id: THERE }]);
  expect([metered, tally.of(THERE).sent_bytes]).toEqual([20, 0]);
});

test("a write is skipped while another is in progress, and the last one writes the rest", async () => {
  const flushed = Promise.withResolvers<void>();
  disk = flushed.promise;
  tally.count(THERE, PLACE, MORE);
  const writes = [tally.write()];
  tally.count(THERE, PLACE, MORE);
  writes.push(tally.write(), tally.writeAll());
  expect(commits).toBe(1);
  flushed.resolve();
  await Promise.all(writes);
  expect(commits).toBe(2);
  expect(trafficOf(database.queries, THERE)).toEqual({ sent_bytes: 10, received_bytes: 14, connections: 2 });
});
