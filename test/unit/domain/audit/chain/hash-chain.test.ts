/** The hash chain of 100 000 records: whole, and with every kind of change named by the first record that does not fit. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Connection } from "../../../../../daemon/db/client.ts";
import { chainHead } from "../../../../../daemon/domain/audit/chain/chain-head.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { ChainCheck, type ChainFacts, hashOf } from "../../../../../daemon/domain/audit/chain/hash-chain.ts";
import { verifyAudit } from "../../../../../daemon/domain/audit/chain/verify.ts";
import { listAudit } from "../../../../../daemon/domain/audit/rows.ts";
import { auditChains } from "../../../../../daemon/domain/audit/store.ts";
import type { AuditRow } from "../../../../../daemon/domain/audit/table.ts";
import { append, auditDatabase, ORG } from "../audit-fixture.ts";

const RECORDS = 100_000;

let connection: Connection;
beforeAll(() => {
  connection = auditDatabase();
  connection.execute("BEGIN");
  const startedAt = performance.now();
  for (let n = 1; n <= RECORDS; n++) append(connection, n);
  console.log(`${RECORDS} records appended in ${Math.round(performance.now() - startedAt)} ms`);
  for (let n = 1; n <= 3; n++) append(connection, n, { org_id: "org_other" });
  connection.execute("COMMIT");
}, 120_000);
afterAll(() => connection.close());

const rows = () => listAudit(connection.queries, { org_id: ORG, order: "asc", limit: RECORDS });

test("is intact, and the time of the check is printed", async () => {
  const startedAt = performance.now();
  const verdict = await verifyAudit(connection.queries, chainKey(ORG));
  const ms = performance.now() - startedAt;
  console.log(`${RECORDS} records verified in ${Math.round(ms)} ms`);
  expect(verdict).toEqual({ ok: true, from_seq: 1, to_seq: RECORDS, broken_at: null });
});

test("is one per organization", async () => {
  expect(await verifyAudit(connection.queries, chainKey("org_other"))).toMatchObject({ ok: true, to_seq: 3 });
  expect(await verifyAudit(connection.queries, chainKey("org_none"))).toEqual({
    ok: true,
    from_seq: 0,
    to_seq: 0,
    broken_at: null,
  });
  expect(auditChains(connection.queries).sort()).toEqual(["org_other", ORG]);
});

/** Checks records in order of seq. */
function verifyChain(records: Iterable<AuditRow>, known: ChainFacts) {
  const check = new ChainCheck(known);
  for (const row of records) if (!check.take(row)) break;
  return check.end();
}

describe("a change", () => {
  let whole: AuditRow[];
  let head: ReturnType<typeof chainHead>;
  beforeAll(() => {
    whole = rows();
    head = chainHead(connection.queries, chainKey(ORG));
  });
  const at = (seq: number): AuditRow => {
    const row = whole[seq - 1];
    if (!row) throw new Error(`no record ${seq}`);
    return row;
  };
  /** The chain with some records replaced by others, or by none. */
  const changed = (changes: Record<number, AuditRow | null>) =>
    whole.flatMap((row) => {
      const change = changes[row.seq];
      return change === undefined ? [row] : change === null ? [] : [change];
    });
  const brokenAt = (records: AuditRow[]) => verifyChain(records, { head }).broken_at;

  test("of any column names that record", () => {
    for (const [index, column] of Object.keys(at(1)).entries()) {
      const seq = 1000 + index;
      const row = at(seq);
      const value = row[column as keyof AuditRow];
      const flipped = typeof value === "number" ? value + 1 : value === null ? "" : `${String(value).slice(0, -1)}~`;
      // A record under another number is missing under its own.
      expect({ column, at: brokenAt(changed({ [seq]: { ...row, [column]: flipped } })) }).toEqual({ column, at: seq });
    }
  });

  test.each([1, 2, 50_000, 99_999])("that drops record %i names that number", (seq) => {
    expect(brokenAt(changed({ [seq]: null }))).toBe(seq);
  });

  test("that drops a record and closes the gap names the next record, even with new numbers", () => {
    const removed = 40_000;
    const closed = whole
      .filter(({ seq }) => seq !== removed)
      .map((row) => (row.seq > removed ? { ...row, seq: row.seq - 1 } : row));
    expect(brokenAt(closed)).toBe(removed);
  });

  test("that swaps two records names the first of them", () => {
    const [a, b] = [at(7000), at(7001)];
    expect(brokenAt(changed({ 7000: b, 7001: a }))).toBe(7000);
    expect(brokenAt(changed({ 7000: { ...b, seq: 7000 }, 7001: { ...a, seq: 7001 } }))).toBe(7000);
  });

  test("that inserts a record names it", () => {
    const put = { ...at(500), seq: 501 };
    const later = whole.slice(500).map((row) => ({ ...row, seq: row.seq + 1 }));
    expect(brokenAt([...whole.slice(0, 500), put, ...later])).toBe(501);
  });

  test("that recomputes a record's hash names the next record", () => {
    const forged = { ...at(60_000), outcome: "success" as const, status: 299 };
    expect(brokenAt(changed({ 60000: { ...forged, hash: hashOf(forged) } }))).toBe(60_001);
  });

  test("that recomputes every later hash names the head, which does not match", () => {
    const forged: AuditRow[] = [];
    for (const row of whole.slice(99_000)) {
      const next = { ...row, actor_name: "somebody else", prev_hash: forged.at(-1)?.hash ?? row.prev_hash };
      forged.push({ ...next, hash: hashOf(next) });
    }
    expect(brokenAt([...whole.slice(0, 99_000), ...forged])).toBe(RECORDS);
  });

  test.each([RECORDS - 1, 99_000, 1, 0])("that truncates the chain after record %i names the next", (last) => {
    expect(verifyChain(whole.slice(0, last), { head })).toEqual({
      ok: false,
      from_seq: 1,
      to_seq: last,
      broken_at: last + 1,
    });
  });

  test("that removes the head names the record after the last, which cannot be verified", () => {
    expect(verifyChain(whole, { head: null }).broken_at).toBe(RECORDS + 1);
  });

  test("is not reported for records after the head was read", () => {
    const earlier = { seq: 90_000, hash: at(90_000).hash };
    expect(verifyChain(whole, { head: earlier }).ok).toBe(true);
    expect(verifyChain(whole, { head: { seq: 90_000, hash: at(89_999).hash } }).broken_at).toBe(90_000);
  });
});
