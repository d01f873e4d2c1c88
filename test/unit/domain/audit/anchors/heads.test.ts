/** The file of heads: its contents, the failures it survives, and the manipulations it reveals that the database alone would hide. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Log, makeLog } from "../../../../../daemon/core/log.ts";
import type { Connection } from "../../../../../daemon/db/client.ts";
import { type LocalDatabase, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { Anchors } from "../../../../../daemon/domain/audit/anchors/anchors.ts";
import { filesOf, readHeads } from "../../../../../daemon/domain/audit/anchors/heads.ts";
import { HeadsFile } from "../../../../../daemon/domain/audit/anchors/heads-file.ts";
import { chainHead } from "../../../../../daemon/domain/audit/chain/chain-head.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { hashOf } from "../../../../../daemon/domain/audit/chain/hash-chain.ts";
import { verifyAll } from "../../../../../daemon/domain/audit/chain/verify-all.ts";
import { purgeAudit } from "../../../../../daemon/domain/audit/retention.ts";
import { listAudit } from "../../../../../daemon/domain/audit/rows.ts";
import { appendAudit } from "../../../../../daemon/domain/audit/store.ts";
import { boundOf, longestTurn } from "../../../../harness/event-loop/longest-turn.ts";
import { until } from "../../../../harness/guests.ts";
import { AUDIT_BEGAN_MS, append, auditDatabase, entry, ORG } from "../audit-fixture.ts";

const CHAINS = 20_000;
const MAX_TURN_MS = 20;
const NO_TURNS = { next: () => null };

let connection: Connection;
let directory: string;
let file: string;
let errors: string[];
beforeEach(() => {
  connection = auditDatabase();
  directory = mkdtempSync(join(tmpdir(), "roomd-heads-"));
  file = join(directory, "heads.ndjson");
  errors = [];
});
afterEach(() => {
  connection.close();
  rmSync(directory, { recursive: true });
});

function heads(intervalMs = 1e6, database = makeDatabase(connection)): HeadsFile {
  const log = { error: (message: string) => errors.push(message) } as unknown as Log;
  return new HeadsFile({ database, log, file, intervalMs, onLost: ({ message }) => errors.push(message) });
}
const appended = (from: number, to: number) => {
  for (let n = from; n <= to; n++) append(connection, n);
};
const written = () =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
const verdicts = async () => (await verifyAll(connection.queries, filesOf(file))).verdicts;

/** Acts as an attacker that may write to the database, but not to the file. */
function tamper(...statements: string[]): void {
  const triggers = connection.queries.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
  for (const { name } of triggers) connection.execute(`DROP TRIGGER ${name}`);
  for (const statement of statements) connection.execute(statement);
}

/** Ends the chain after a record, head and all. */
const cutAfter = (seq: number) => [
  `DELETE FROM audit WHERE seq > ${seq}`,
  `UPDATE audit_heads SET seq = ${seq}, hash = (SELECT hash FROM audit WHERE seq = ${seq})`,
];

describe("the file", () => {
  test("contains the head of each changed chain, once", async () => {
    const one = heads();
    appended(1, 3);
    append(connection, 1, { org_id: null });
    await one.settle();
    await one.settle();
    appended(4, 5);
    await one.settle();
    const at = expect.stringMatching(/^\d{4}-.*Z$/);
    const head = chainHead(connection.queries, chainKey(ORG));
    expect(written()).toMatchObject([
      { org_id: null, seq: 1 },
      { org_id: ORG, seq: 3 },
      { org_id: ORG, ...head, at },
    ]);
    expect(await verdicts()).toMatchObject([{ ok: true }, { ok: true }]);
  });

  test("is written a fixed time after a record, and not before", async () => {
    const one = heads(20);
    appended(1, 1);
    expect(filesOf(file)).toEqual([]);
    one.expect();
    await expect.poll(() => filesOf(file).length, { timeout: 20_000 }).toBe(1);
    await expect.poll(() => written().length, { timeout: 20_000 }).toBe(1);
  });

  test("contains only heads that a loss of power cannot remove from the database", async () => {
    const flushed = Promise.withResolvers<void>();
    const log = { sync: () => flushed.promise, close: () => {} };
    const database = makeDatabase(connection, () => false, log);
    const one = heads(1e6, database);
    const recorded = database.commit((queries) => appendAudit(queries, entry(1)));
    await until("the record is committed", () => chainHead(connection.queries, chainKey(ORG))?.seq === 1);
    const settled = one.settle();
    await Bun.sleep(50);
    expect(filesOf(file)).toEqual([]);
    flushed.resolve();
    await Promise.all([recorded, settled]);
    expect(written()).toMatchObject([{ seq: 1 }]);
  });

  test("takes nothing of the disk's reserve, and gives none to concurrent writes; nor do anchors", async () => {
    const database = makeDatabase(connection);
    const vital: boolean[] = [];
    const seen: LocalDatabase = {
      ...database,
      commit: (work, isVital = true) => {
        vital.push(isVital);
        return database.commit(work, isVital);
      },
    };
    appended(1, 1);
    await heads(1e6, seen).settle();
    const store = { last: async () => [], after: async () => [], add: async () => {} };
    const log = makeLog("error", () => {});
    await new Anchors({ database: seen, log, store, intervalMs: 1e6 }).settle();
    expect(vital).toEqual([false, false]);
  });

  test("continues after an incomplete line, which is reported", async () => {
    appended(1, 2);
    await heads().settle();
    appendFileSync(file, '{"org_id":"org_te');
    appended(3, 3);
    await heads().settle();
    const { witnessed, unreadable } = await readHeads([file], NO_TURNS);
    expect([...(witnessed.get(chainKey(ORG))?.keys() ?? [])]).toEqual([2, 3]);
    expect(unreadable).toEqual([`${file}:2`]);
  });

  test("is rotated when it has grown large, and still read", async () => {
    appended(1, 2);
    await heads().settle();
    appendFileSync(file, "\n".repeat(9 * 1024 ** 2));
    appended(3, 3);
    await heads().settle();
    expect(written()).toMatchObject([{ seq: 3 }]);
    expect([...((await readHeads(filesOf(file), NO_TURNS)).witnessed.get(chainKey(ORG))?.keys() ?? [])]).toEqual([
      2, 3,
    ]);
  });

  test("that cannot be written is reported and retried", async () => {
    file = join(directory, "nowhere", "heads.ndjson");
    appended(1, 1);
    const one = heads(10);
    await one.settle();
    await expect.poll(() => errors.length, { timeout: 20_000 }).toBeGreaterThan(1);
    await one.stop();
  });
});

describe("manipulations that the database alone would hide:", () => {
  beforeEach(async () => {
    const one = heads();
    appended(1, 50);
    await one.settle();
    appended(51, 60);
    await one.settle();
    appended(61, 70);
  });

  test("none, if no row was changed", async () => {
    expect(await verdicts()).toMatchObject([{ ok: true, to_seq: 70 }]);
    await heads().settle();
    expect(errors).toEqual([]);
  });

  test("a truncated tail together with its head", async () => {
    tamper(...cutAfter(55));
    expect((await verifyAll(connection.queries, [])).verdicts).toMatchObject([{ ok: true }]);
    expect(await verdicts()).toMatchObject([{ ok: false, broken_at: 56 }]);
    await heads().settle();
    expect(errors).toHaveLength(1);
  });

  test("one of 20,000 chains, found at the start in short turns", async () => {
    connection.execute("BEGIN");
    for (let n = 0; n < CHAINS; n++) append(connection, 1, { org_id: `org_${n}` });
    connection.execute("COMMIT");
    await heads().settle();
    tamper(`UPDATE audit SET hash = '' WHERE org_key = 'org_${CHAINS / 2}'`);
    const longest = await longestTurn(async () => {
      heads();
      await until("the difference is reported", () => errors.length > 0);
    });
    expect(errors).toHaveLength(1);
    expect(longest).toBeLessThan(boundOf(MAX_TURN_MS));
  });

  test("a truncated chain that has grown again since", async () => {
    tamper(...cutAfter(55));
    appended(101, 130);
    expect((await verifyAll(connection.queries, [])).verdicts).toMatchObject([{ ok: true }]);
    expect(await verdicts()).toMatchObject([{ ok: false, broken_at: 60 }]);
  });

  test("records with recomputed hashes", async () => {
    const rows = listAudit(connection.queries, { org_id: ORG, order: "asc", limit: 100 });
    let prev_hash = rows[19]?.prev_hash ?? "";
    const statements = rows.slice(19).map((row) => {
      const forged = { ...row, actor_id: "kid_other", prev_hash };
      const hash = hashOf(forged);
      const change = `UPDATE audit SET actor_id = 'kid_other', prev_hash = '${prev_hash}', hash = '${hash}' WHERE seq = ${row.seq}`;
      prev_hash = hash;
      return change;
    });
    tamper(...statements, `UPDATE audit_heads SET hash = '${prev_hash}'`);
    expect((await verifyAll(connection.queries, [])).verdicts).toMatchObject([{ ok: true }]);
    expect(await verdicts()).toMatchObject([{ ok: false, broken_at: 50 }]);
  });

  test("a deleted chain of an organization", async () => {
    tamper("DELETE FROM audit", "DELETE FROM audit_heads");
    expect((await verifyAll(connection.queries, [])).verdicts).toEqual([]);
    expect(await verdicts()).toMatchObject([{ org_id: ORG, ok: false, broken_at: 1 }]);
  });

  test("a purged beginning, which is not reported as one", async () => {
    purgeAudit(connection.queries, chainKey(ORG), new Date(AUDIT_BEGAN_MS + 56_000).toISOString());
    expect(await verdicts()).toMatchObject([{ ok: true, from_seq: 56, to_seq: 71 }]);
    purgeAudit(connection.queries, chainKey(ORG), new Date(AUDIT_BEGAN_MS + 66_000).toISOString());
    expect(await verdicts()).toMatchObject([{ ok: true, from_seq: 66 }]);
    await heads().settle();
    expect(errors).toEqual([]);
  });

  test("a file with invalid lines reports them, and its other lines are used", async () => {
    writeFileSync(file, `nothing\n${readFileSync(file, "utf8")}{"org_id":1,"seq":"x"}\n`);
    const { verdicts: found, heads: read } = await verifyAll(connection.queries, [file]);
    expect(found).toMatchObject([{ ok: true }]);
    expect(read.unreadable).toEqual([`${file}:1`, `${file}:4`]);
  });
});
