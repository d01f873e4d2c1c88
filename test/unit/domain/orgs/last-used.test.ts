/** When keys were last used: known at once, and written together. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { MAKER_RULES } from "../../../../daemon/compose/made.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../../../daemon/domain/orgs/changes.ts";
import { newKey } from "../../../../daemon/domain/orgs/keys.ts";
import { LastUsed } from "../../../../daemon/domain/orgs/last-used.ts";
import { getKey } from "../../../../daemon/domain/orgs/store.ts";
import type { KeyRow } from "../../../../daemon/domain/orgs/table.ts";

let connection: Connection;
let database: Database;
let commits = 0;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  commits = 0;
  database.onCommit(() => commits++);
});
afterEach(async () => {
  vi.useRealTimers();
  await database.close();
});

const makeKeys = (count: number): Promise<KeyRow[]> =>
  Promise.all(
    Array.from({ length: count }, (_, n) => {
      const maker = { type: "operator", id: "host" };
      const { row } = newKey({ org_id: null, kind: "api", name: `key ${n}`, maker });
      return makeOrgChanges(database, MAKER_RULES).addKey(row, () => row);
    }),
  );

test("a thousand uses of many keys are one write, and a use is shown before it is written", async () => {
  const rows = await makeKeys(10);
  const [first] = rows as [KeyRow];
  const used = new LastUsed(
    makeOrgChanges(database, MAKER_RULES),
    makeLog("error", () => {}),
  );
  const before = commits;
  for (let n = 0; n < 1000; n++) used.note((rows[n % 9] as KeyRow).key_id);
  const shown = used.withUse(first).last_used_at;
  expect(shown).not.toBeNull();
  expect(getKey(database.queries, first.key_id)?.last_used_at).toBeNull();
  await used.settle();
  expect(commits - before).toBe(1);
  const kept = rows.map(({ key_id }) => getKey(database.queries, key_id)?.last_used_at ?? null);
  expect(kept[0]).toBe(shown);
  expect(kept.filter((each) => each === null)).toHaveLength(1);
  await used.settle();
  expect(commits - before).toBe(1);
});

test("uses are written by themselves after a while", async () => {
  const [row] = (await makeKeys(1)) as [KeyRow];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  new LastUsed(
    makeOrgChanges(database, MAKER_RULES),
    makeLog("error", () => {}),
  ).note(row.key_id);
  const before = commits;
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  await database.commit(() => {});
  expect(commits - before).toBe(1);
  expect(getKey(database.queries, row.key_id)?.last_used_at).not.toBeNull();
});
