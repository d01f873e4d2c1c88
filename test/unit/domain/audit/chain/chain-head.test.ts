/** Heads of chains, written once per commit: the chain is intact whichever part of the commit is rolled back. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Connection } from "../../../../../daemon/db/client.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { chainHead, gatherHeads } from "../../../../../daemon/domain/audit/chain/chain-head.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { verifyAudit } from "../../../../../daemon/domain/audit/chain/verify.ts";
import { appendAudit, appendAudits, listAudit } from "../../../../../daemon/domain/audit/index.ts";
import { watchStatements } from "../../../../harness/event-loop/watched-statements.ts";
import { auditDatabase, entry, ORG } from "../audit-fixture.ts";

let connection: Connection;
let database: Database;
/** How often the disk is full at the end of a commit that is tried. */
let full: number;

beforeEach(() => {
  connection = auditDatabase();
  database = makeDatabase(connection, () => full-- > 0);
  full = 0;
  gatherHeads(database);
});
afterEach(() => database.close());

const add = (n: number) => database.commit((queries) => appendAudit(queries, entry(n)));
/** Rows that were written so far. */
const changes = () => connection.queries.all<{ rows: number }>(sql`SELECT total_changes() AS rows`)[0]?.rows ?? 0;
const verdict = () => verifyAudit(connection.queries, chainKey(ORG));

test("is read and written once for all records in a commit", async () => {
  using reads = watchStatements(/from audit_heads/i);
  const before = changes();
  // All of it is within the time of one commit.
  const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
  await Promise.all([1, 2, 3, 4].map(add));
  clock.mockRestore();
  expect([reads.runs.length, changes() - before]).toEqual([1, 4 + 1]);
  expect(chainHead(connection.queries, chainKey(ORG))?.seq).toBe(4);
  expect(await verdict()).toMatchObject({ ok: true, to_seq: 4 });
});

test("gives each of many concurrent records a place in its chain", async () => {
  const other = chainKey("org_other");
  const entries = Array.from({ length: 70 }, (_, n) => ({ ...entry(n), org_id: n % 7 === 0 ? "org_other" : ORG }));
  await database.commit((queries) => appendAudits(queries, entries));
  expect(await verdict()).toMatchObject({ ok: true, to_seq: 60 });
  expect(await verifyAudit(connection.queries, other)).toMatchObject({ ok: true, to_seq: 10 });
  const found = listAudit(connection.queries, { org_id: "org_other", order: "asc", limit: 100 });
  expect(found.map(({ request_id }) => request_id)).toEqual(Array.from({ length: 10 }, (_, n) => `req_${n * 7}`));
});

test("a failed write between others leaves no trace", async () => {
  const failing = database.commit((queries) => {
    appendAudit(queries, entry(2));
    throw new Error("refused");
  });
  const [first, second, third] = await Promise.allSettled([add(1), failing, add(3)]);
  expect([first.status, second.status, third.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await verdict()).toMatchObject({ ok: true, to_seq: 2 });
});

test("a retry on a full disk and a record added before the commit have their place", async () => {
  let tries = 0;
  database.beforeCommit((queries) => {
    appendAudit(queries, entry(9));
    if (tries++ > 0) return;
    full = 1;
    throw Object.assign(new Error("full"), { code: "SQLITE_FULL" });
  });
  await Promise.all([add(1), add(2)]);
  expect(tries).toBe(2);
  expect(await verdict()).toMatchObject({ ok: true, to_seq: 3 });
  await add(3);
  expect(await verdict()).toMatchObject({ ok: true, to_seq: 5 });
});
