/** Expired records are purged from the beginning of their chain, which stays provable; nothing else is ever deleted. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Connection } from "../../../../daemon/db/client.ts";
import { chainKey } from "../../../../daemon/domain/audit/chain/chain-key.ts";
import { GENESIS, PURGED } from "../../../../daemon/domain/audit/chain/hash-chain.ts";
import { verifyAudit } from "../../../../daemon/domain/audit/chain/verify.ts";
import { purgeAudit } from "../../../../daemon/domain/audit/retention.ts";
import { chainStart, hashAt, listAudit } from "../../../../daemon/domain/audit/rows.ts";
import { AUDIT_BEGAN_MS, append, auditDatabase, ORG } from "./audit-fixture.ts";

const RECORDS = 100;
let connection: Connection;
beforeEach(() => {
  connection = auditDatabase();
  for (let n = 1; n <= RECORDS; n++) append(connection, n);
});
afterEach(() => connection.close());

const momentOf = (n: number) => new Date(AUDIT_BEGAN_MS + n * 1000).toISOString();
/** Purges all that came before the nth record. */
const purgeBefore = (n: number) => purgeAudit(connection.queries, chainKey(ORG), momentOf(n));
const verdict = () => verifyAudit(connection.queries, chainKey(ORG));
const seqs = () => listAudit(connection.queries, { org_id: ORG, order: "asc", limit: 1000 }).map(({ seq }) => seq);

/** Acts as an attacker that may write to the file: without the triggers. */
function tamper(...statements: string[]): void {
  const triggers = connection.queries.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
  for (const { name } of triggers) connection.execute(`DROP TRIGGER ${name}`);
  for (const statement of statements) connection.execute(statement);
}

describe("a purge", () => {
  test("deletes older records, adds a record of itself, and the chain is intact", async () => {
    const hash = hashAt(connection.queries, chainKey(ORG), 40);
    expect(purgeBefore(41)).toBe(40);
    expect(seqs()).toEqual(Array.from({ length: 61 }, (_, index) => 41 + index));
    expect(chainStart(connection.queries, chainKey(ORG))).toEqual({ seq: 40, hash });
    const [last] = listAudit(connection.queries, { org_id: ORG, order: "desc", limit: 1 });
    expect(last).toMatchObject({ event: PURGED, details: JSON.stringify({ seq: 40, hash, records: 40 }) });
    expect(await verdict()).toEqual({ ok: true, from_seq: 41, to_seq: 101, broken_at: null });
  });

  test("continues at the end of the previous one", async () => {
    purgeBefore(11);
    purgeBefore(51);
    expect(chainStart(connection.queries, chainKey(ORG))?.seq).toBe(50);
    append(connection, 200);
    expect(await verdict()).toEqual({ ok: true, from_seq: 51, to_seq: 103, broken_at: null });
  });

  test("of everything leaves its own record, and a second purge deletes nothing", async () => {
    expect(purgeBefore(1000)).toBe(RECORDS);
    expect(await verdict()).toEqual({ ok: true, from_seq: 101, to_seq: 101, broken_at: null });
    const future = new Date(Date.now() + 1e9).toISOString();
    expect(purgeAudit(connection.queries, chainKey(ORG), future)).toBe(0);
    expect(seqs()).toEqual([101]);
  });

  test("stops at the first record to keep, whatever follows", async () => {
    append(connection, 3);
    expect(purgeBefore(5)).toBe(4);
    expect(seqs()).toContain(101);
  });

  test("without expired records changes nothing", () => {
    expect(purgeBefore(1)).toBe(0);
    expect(chainStart(connection.queries, chainKey(ORG))).toBeNull();
    expect(seqs()).toHaveLength(RECORDS);
  });
});

describe("the database", () => {
  test.each([
    "DELETE FROM audit",
    "DELETE FROM audit WHERE seq = 21",
    "DELETE FROM audit_starts",
    "UPDATE audit_starts SET seq = 10",
    "UPDATE audit_starts SET seq = 30",
    `UPDATE audit_starts SET seq = 300, hash = '${GENESIS}'`,
    `INSERT INTO audit_starts VALUES ('org_other', 1, '${GENESIS}')`,
    `INSERT INTO audit_starts SELECT org_key, seq, '${GENESIS}' FROM audit WHERE seq = 30 ON CONFLICT DO UPDATE SET seq = 30`,
    `REPLACE INTO audit_starts VALUES ('${ORG}', 30, '${GENESIS}')`,
    "UPDATE audit SET status = 1 WHERE seq = 21",
  ])("refuses %s, also after a purge", (statement) => {
    purgeBefore(21);
    expect(() => connection.execute(statement)).toThrow(/append-only/);
  });
});

describe("a beginning that was not purged", () => {
  const startAt = (seq: number) =>
    `INSERT INTO audit_starts SELECT org_key, seq, hash FROM audit WHERE seq = ${seq} ON CONFLICT DO UPDATE SET seq = excluded.seq, hash = excluded.hash`;

  test("is reported as missing, although the chain claims to begin later", async () => {
    tamper(startAt(30), "DELETE FROM audit WHERE seq <= 30");
    expect(await verdict()).toMatchObject({ ok: false, broken_at: 1 });
  });

  test("is reported as missing if the purge deleted less", async () => {
    purgeBefore(21);
    tamper(startAt(30), "DELETE FROM audit WHERE seq <= 30");
    expect(await verdict()).toMatchObject({ ok: false, broken_at: 21 });
  });

  test("is reported as missing without a record of a later beginning", async () => {
    purgeBefore(21);
    tamper("DELETE FROM audit WHERE seq <= 25");
    expect(await verdict()).toMatchObject({ ok: false, broken_at: 21 });
    tamper("DELETE FROM audit_starts");
    expect(await verdict()).toMatchObject({ ok: false, broken_at: 1 });
  });
});
