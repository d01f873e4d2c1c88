/** Last use of keys: visible immediately, and written in batches. */

import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readAddresses } from "../../../../daemon/cluster/address.ts";
import { Connections } from "../../../../daemon/cluster/connections.ts";
import { Rounds } from "../../../../daemon/cluster/rounds.ts";
import { makeSchema } from "../../../../daemon/cluster/schema.ts";
import { MAKER_RULES } from "../../../../daemon/compose/made.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { SharedRows, whole } from "../../../../daemon/db/shared-rows.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeOrgChanges } from "../../../../daemon/domain/orgs/changes.ts";
import { makeAuthenticate, newKey } from "../../../../daemon/domain/orgs/keys.ts";
import { LastUsed } from "../../../../daemon/domain/orgs/last-used.ts";
import { getKey } from "../../../../daemon/domain/orgs/store.ts";
import type { KeyRow } from "../../../../daemon/domain/orgs/table.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { Postgres } from "../../../harness/hosts/postgres.ts";

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
    { isShared: false },
  );
  const before = commits;
  for (let n = 0; n < 1000; n++) used.note(rows[n % 9] as KeyRow);
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

test("uses are written automatically after a delay", async () => {
  const [row] = (await makeKeys(1)) as [KeyRow];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  new LastUsed(
    makeOrgChanges(database, MAKER_RULES),
    makeLog("error", () => {}),
    { isShared: false },
  ).note(row);
  const before = commits;
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  await database.commit(() => {});
  expect(commits - before).toBe(1);
  expect(getKey(database.queries, row.key_id)?.last_used_at).not.toBeNull();
});

test("a key shared by two hosts has one change an hour, however often both use it", async () => {
  await using server = await Postgres.start({ settings: { fsync: "off" } });
  const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
  await connections.transaction(async (run) => {
    await makeSchema(run);
    await run("INSERT INTO roomd.cluster (cluster_id, version, seq) VALUES ('c', 1, 0)");
    await run("INSERT INTO roomd.leases VALUES ('a', 'i', '1', now(), '{}'), ('b', 'i', '1', now(), '{}')");
  }, 5000);
  const log = makeLog("error", () => {});
  const made = ["a", "b"].map((host_id) => {
    const own = openConnection(":memory:");
    migrate(own);
    const local = makeDatabase(own);
    const shared = new SharedRows(local.queries, ["orgs", "api_keys"].map(whole));
    const member = { cluster_id: "c", host_id, incarnation: "i" };
    const rounds = new Rounds({ database: local, shared, connections, member, log, onNews: () => {} });
    const changes = makeOrgChanges({ ...local, commit: (work) => rounds.change(work, false) }, MAKER_RULES);
    const used = new LastUsed(changes, log, { isShared: true });
    const authenticate = makeAuthenticate(local.queries, (key) => used.note(key));
    return { local, rounds, changes, used, authenticate };
  });
  const [a, b] = made as [(typeof made)[0], (typeof made)[0]];
  const org = { name: "o", plan: "free" as const, created_at: "2026-01-01T00:00:00.000Z" };
  const maker = { type: "operator", id: "host" };
  const org_id = `org_${randomUUID()}` as OrgId;
  const { row, key } = newKey({ org_id, kind: "api", name: "k", maker });
  await a.changes.addOrg({ org: { org_id, ...org }, keys: [row] }, () => {});
  await b.rounds.pull();
  const changes = async () => Number(await server.sql("SELECT count(*) FROM roomd.changes"));
  const before = await changes();
  const start = Date.parse("2026-02-01T00:00:00.000Z");
  vi.useFakeTimers({ toFake: ["Date"] });
  for (let minute = 0; minute < 150; minute++) {
    vi.setSystemTime(start + minute * 60_000);
    for (const { authenticate } of [a, b]) authenticate(`Bearer ${key}`);
    await Promise.all([a.used.settle(), b.used.settle()]);
    await Promise.all([a.rounds.pull(), b.rounds.pull()]);
  }
  vi.useRealTimers();
  expect(await changes()).toBe(before + 3);
  for (const { local } of [a, b])
    expect(getKey(local.queries, row.key_id)?.last_used_at).toBe("2026-02-01T02:00:00.000Z");
  for (const { local, rounds } of [a, b]) {
    await rounds.settle();
    await local.close();
  }
  connections.close();
}, 60_000);
