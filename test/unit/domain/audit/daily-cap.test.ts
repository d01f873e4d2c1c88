/** Daily limit of records: those beyond it are counted, nothing is unrecorded, and the chain stays provable. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Connection } from "../../../../daemon/db/client.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { chainKey } from "../../../../daemon/domain/audit/chain/chain-key.ts";
import { verifyAudit } from "../../../../daemon/domain/audit/chain/verify.ts";
import type { AuditEntry } from "../../../../daemon/domain/audit/entry.ts";
import { flushAggregates } from "../../../../daemon/domain/audit/flush-aggregates.ts";
import { listAudit, toRecord } from "../../../../daemon/domain/audit/rows.ts";
import { appendAudits, limitRecords } from "../../../../daemon/domain/audit/store.ts";
import { append, auditDatabase, entry, ORG } from "./audit-fixture.ts";

const PER_DAY = 10;
const NOON = Date.UTC(2026, 0, 2, 12);
let connection: Connection;
let database: Database;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOON });
  connection = auditDatabase();
  database = makeDatabase(connection);
  limitRecords(connection.queries, PER_DAY);
});
afterEach(async () => {
  await database.close();
  vi.useRealTimers();
});

const record = (entry: Partial<AuditEntry>) =>
  database.commit(() => append(connection, 0, { outcome: "success", at: new Date().toISOString(), ...entry }));
const records = (org_id = ORG) => listAudit(connection.queries, { org_id, order: "asc", limit: 1000 }).map(toRecord);
const recordCount = () =>
  connection.queries.all<{ n: number }>(sql`SELECT ifnull(sum(count), 0) AS n FROM audit_counts`)[0]?.n;
const fill = async (times: number) => {
  while (records().length < times * PER_DAY) await record({ event: "room.created" });
};

describe("above the daily limit of records", () => {
  test("reads and refusals are counted, and changes are recorded", async () => {
    await fill(1);
    await record({ event: "room.read" });
    await record({ event: "drive.written", outcome: "error", error_code: "drive_full" });
    await record({ event: "room.created", outcome: "denied" });
    expect([records().length, recordCount()]).toEqual([PER_DAY, 3]);
    for (const event of ["drive.written", "message.sent", "exec.started", "exec.terminal_attached"])
      await record({ event });
    expect([records().length, recordCount()]).toEqual([PER_DAY + 4, 3]);
  });

  test("frequent agent events are counted above twice the limit; creates, ends and runs are always recorded", async () => {
    await fill(2);
    for (const event of ["drive.written", "message.sent", "barrier.arrived", "exec.stdin"]) await record({ event });
    expect([records().length, recordCount()]).toEqual([2 * PER_DAY, 4]);
    const always = [
      "exec.started",
      "exec.finished",
      "room.destroyed",
      "sandbox.created",
      "key.revoked",
      "port.exposed",
    ];
    for (const event of always) await record({ event });
    expect(
      records()
        .slice(2 * PER_DAY)
        .map(({ event }) => event),
    ).toEqual(always);
  });

  test("equal events become one record with count, first and last; the chain is intact", async () => {
    await fill(2);
    for (let n = 0; n < 50; n++) {
      vi.setSystemTime(NOON + n * 1000);
      await record({ event: "message.sent", agent_id: n % 5 === 0 ? "b" : "a", details: { seq: n } });
    }
    await record({ event: "egress.denied", outcome: "denied", details: { host: "h", count: 7 } });
    await flushAggregates(database);
    const aggregated = records().slice(2 * PER_DAY);
    const moment = (n: number) => new Date(NOON + n * 1000).toISOString();
    expect(aggregated.map(({ event, agent_id, at, details }) => ({ event, agent_id, at, details }))).toEqual([
      ...[
        { event: "egress.denied", agent_id: null, at: moment(49) },
        { event: "message.sent", agent_id: "a", at: moment(49) },
        { event: "message.sent", agent_id: "b", at: moment(45) },
      ].map((each, at) => ({
        ...each,
        details: [
          { count: 7, first_at: moment(49), last_at: moment(49), last: { host: "h", count: 7 } },
          { count: 40, first_at: moment(1), last_at: moment(49), last: { seq: 49 } },
          { count: 10, first_at: moment(0), last_at: moment(45), last: { seq: 45 } },
        ][at],
      })),
    ]);
    expect(recordCount()).toBe(0);
    await flushAggregates(database);
    expect(records().length).toBe(2 * PER_DAY + 3);
    expect(await verifyAudit(connection.queries, chainKey(ORG))).toMatchObject({ ok: true, to_seq: 2 * PER_DAY + 3 });
  });

  test("a chain has a limited number of counters for any number of names, and no event is lost", async () => {
    await fill(1);
    for (let n = 0; n < 1000; n++) await record({ event: "room.read", agent_id: `agent-${n}` });
    const [{ rows } = { rows: 0 }] = connection.queries.all<{ rows: number }>(
      sql`SELECT count(*) AS rows FROM audit_counts`,
    );
    expect(rows).toBe(257);
    await flushAggregates(database);
    const aggregated = records().slice(PER_DAY);
    expect(aggregated.reduce((sum, { details }) => sum + Number(details.count), 0)).toBe(1000);
    expect(aggregated.find(({ agent_id }) => agent_id === null)).toMatchObject({
      room_id: null,
      actor: { type: "system", name: "several callers" },
      details: { count: 1000 - 256 },
    });
  });

  test("a rolled back call is not counted", async () => {
    await fill(2);
    const taken = database.commit(() => {
      append(connection, 0, { event: "message.sent", outcome: "success" });
      throw new Error("refused");
    });
    await expect(taken).rejects.toThrow("refused");
    expect(recordCount()).toBe(0);
  });
});

test("the next day has its own records and counts, for any caller; other chains are independent", async () => {
  await fill(3);
  await record({ event: "room.read" });
  await record({ event: "room.read", org_id: null });
  await record({ event: "room.read", org_id: "org_other" });
  expect([records().length, recordCount()]).toEqual([3 * PER_DAY, 1]);
  vi.setSystemTime(NOON + 24 * 3600 * 1000);
  for (let n = 0; n < PER_DAY; n++) await record({ event: "room.read" });
  expect([records().length, recordCount()]).toEqual([4 * PER_DAY, 1]);
  // As a daemon that starts in the middle of the day.
  limitRecords(connection.queries, PER_DAY);
  await record({ event: "room.read" });
  expect([records().length, recordCount()]).toEqual([4 * PER_DAY, 2]);
});

test("of many records in one commit, those above the limit are counted", async () => {
  const reads = (count: number) =>
    database.commit((queries) =>
      appendAudits(
        queries,
        Array.from({ length: count }, () => ({ ...entry(1), outcome: "success", at: new Date().toISOString() })),
      ),
    );
  await reads(PER_DAY + 5);
  expect([records().length, recordCount()]).toEqual([PER_DAY, 5]);
  vi.setSystemTime(NOON + 24 * 3600 * 1000);
  await reads(PER_DAY + 7);
  expect([records().length, recordCount()]).toEqual([2 * PER_DAY, 12]);
  expect(await verifyAudit(connection.queries, chainKey(ORG))).toMatchObject({ ok: true, to_seq: 2 * PER_DAY });
});
