/** Days of the audit in files of their own: every read finds each record exactly once, wherever it is, and however its move was cut off. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { parsed } from "../../../../../daemon/core/call/operation.ts";
import { nextTurn } from "../../../../../daemon/core/concurrency/next-turn.ts";
import { Notifier } from "../../../../../daemon/core/concurrency/notifier.ts";
import { FAULT_VARIABLE } from "../../../../../daemon/core/fault-points.ts";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { wholly } from "../../../../../daemon/core/loop/steps.ts";
import { readHere } from "../../../../../daemon/db/readers/here.ts";
import type { Reads } from "../../../../../daemon/db/readers/pool.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { topicGroup } from "../../../../../daemon/domain/audit/chain/chain-notifier.ts";
import { PURGED } from "../../../../../daemon/domain/audit/chain/hash-chain.ts";
import { verifyAll } from "../../../../../daemon/domain/audit/chain/verify-all.ts";
import { closeDays, purgeDays } from "../../../../../daemon/domain/audit/days/close.ts";
import { makeEvents } from "../../../../../daemon/domain/audit/reading/events.ts";
import { Readers } from "../../../../../daemon/domain/audit/reading/readers.ts";
import { readPage, readRecord, readSummary } from "../../../../../daemon/domain/audit/reading/reads.ts";
import { scanAudit } from "../../../../../daemon/domain/audit/reading/scan.ts";
import { RoomNumbers } from "../../../../../daemon/domain/audit/room-numbers.ts";
import { chainEnd, chainRecords, chainStart, hashAt, listAudit } from "../../../../../daemon/domain/audit/rows.ts";
import { executionRecords, recordsAbout } from "../../../../../daemon/domain/audit/store.ts";
import { orgEvents } from "../../../../../shared/api/audit.ts";
import { AUDIT_BEGAN_MS, ORG } from "../audit-fixture.ts";
import { DAY_MS, Days, OTHER, RECORDS } from "./days-fixture.ts";

const everyone = { owner: "host", signal: new AbortController().signal } as const;
const CHAINS = [ORG, OTHER, null];
const momentOf = (day: number) => new Date(AUDIT_BEGAN_MS + day * DAY_MS).toISOString();
const count = ({ connection }: Days) => connection.queries.all<{ n: number }>("SELECT count(*) AS n FROM audit")[0]?.n;

/** Results of reads of all chains, by every kind of filter for which the position in the chain matters. */
async function seen({ queries }: Days) {
  const found: unknown[] = [];
  for (const org_id of CHAINS) {
    for (const order of ["asc", "desc"] as const) {
      const filters = [
        {},
        { room_uid: "rom_1" },
        { event: "drive." },
        { room_id: "room-7", outcome: "error" as const },
        { since: momentOf(1), until: momentOf(2.5) },
        { after: 100 },
        { after: 150, room_uid: "rom_2" },
      ];
      for (const filter of filters) {
        const scan = { org_id, order, ...filter };
        found.push(listAudit(queries, { ...scan, limit: 10_000 }));
        found.push(listAudit(queries, { ...scan, last: order === "asc" ? 200 : 20, limit: 35 }));
        found.push([...scanAudit(queries, scan, 50)].flat());
        found.push(parsed(await readHere(readSummary, queries, { scan, about: "it" }, everyone)));
      }
    }
    const key = chainKey(org_id);
    found.push([1, 70, 150, 300, 9999].map((seq) => hashAt(queries, key, seq)));
    const chain: unknown[] = [];
    for (let rows = chainRecords(queries, key, 0, 50); rows.length > 0; ) {
      chain.push(...rows);
      rows = chainRecords(queries, key, rows.at(-1)?.seq ?? 0, 50);
    }
    found.push(chain);
  }
  const room = { org_id: ORG, room_uid: "rom_1", sandbox_id: "sbx_1" };
  found.push(wholly(executionRecords(queries, room, ["exe_0_1"])), wholly(recordsAbout(queries, "kid_1")).length);
  return found.map((each) => Bun.hash(JSON.stringify(each)));
}

const verdicts = async ({ queries }: Days) =>
  (await verifyAll(queries, [])).verdicts.map(({ org_id, ok, broken_at, to_seq }) => ({
    org_id,
    ok,
    broken_at,
    to_seq,
  }));

test("reads of closed days and of the open one give the same as reads of one table", async () => {
  await using days = new Days();
  for (const day of [0, 1, 2, 3]) await days.add(day);
  const before = await seen(days);
  const whole = await verdicts(days);
  expect(whole.every(({ ok }) => ok)).toBe(true);
  await days.close();
  expect(count(days)).toBe(0);
  const names = [0, 1, 2, 3].map((day) => `${momentOf(day).slice(0, 10)}.db`);
  expect(readdirSync(days.directory).sort()).toEqual(names);
  for (const name of names) expect(statSync(join(days.directory, name)).mode & 0o777).toBe(0o400);
  expect((await seen(days)).filter((each, index) => each !== before[index])).toEqual([]);
  expect(await verdicts(days)).toEqual(whole);
});

test("the open day keeps late records, and pages continue across the cut", async () => {
  await using days = new Days();
  vi.useFakeTimers({ now: Date.parse(momentOf(2)) + 1000, toFake: ["Date"] });
  try {
    for (const day of [0, 1, 2]) await days.add(day, 50);
    await days.add(1, 10);
    const page = async (cursor: number | undefined, order: "asc" | "desc") =>
      parsed(
        await readHere(
          readPage,
          days.queries,
          { kind: "", scan: { org_id: ORG, order, after: cursor }, limit: 7 },
          everyone,
        ),
      ).items.map(({ seq }) => seq);
    const all = { asc: await pages("asc"), desc: await pages("desc") };
    async function pages(order: "asc" | "desc", until = Number.POSITIVE_INFINITY) {
      const seqs: number[] = [];
      for (;;) {
        const next = await page(seqs.at(-1), order);
        if (next.length === 0 || seqs.length > until) return seqs;
        seqs.push(...next);
      }
    }
    const halves = { asc: await pages("asc", 20), desc: await pages("desc", 20) };
    const walks = (["asc", "desc"] as const).map((order) => {
      const walk = scanAudit(days.queries, { org_id: ORG, order, outcome: "success" }, 3);
      return { order, walk, rows: [...(walk.next().value ?? []), ...(walk.next().value ?? [])] };
    });
    const expected = walks.map(({ order }) =>
      listAudit(days.queries, { org_id: ORG, order, outcome: "success", limit: 1000 }).map(({ seq }) => seq),
    );
    await days.close();
    expect(readdirSync(days.directory)).toHaveLength(2);
    expect(count(days)).toBe(60);
    for (const order of ["asc", "desc"] as const) {
      const rest: number[] = [];
      for (let next = await page(halves[order].at(-1), order); next.length > 0; ) {
        rest.push(...next);
        next = await page(rest.at(-1), order);
      }
      expect([...halves[order], ...rest]).toEqual(all[order]);
    }
    // A scan that was under way, too.
    const walked = walks.map(({ walk, rows }) => [...rows, ...[...walk].flat()].map(({ seq }) => seq));
    expect(walked).toEqual(expected);
    // Late ones go with the day after.
    vi.setSystemTime(Date.parse(momentOf(3)));
    await days.close();
    expect(count(days)).toBe(0);
    expect(await pages("asc")).toEqual(all.asc);
  } finally {
    vi.useRealTimers();
  }
});

test("after the clock is set back, a day is closed twice", async () => {
  await using days = new Days();
  await days.add(0, 20);
  await days.close();
  await days.add(0, 20);
  await days.close();
  expect(readdirSync(days.directory).sort()).toEqual(["2026-01-01-2.db", "2026-01-01.db"]);
  expect((await verdicts(days)).map(({ ok }) => ok)).toEqual([true, true, true]);
});

const FAULTS = ["day.copied", "day.noted", "day.recorded", "day.shortened", "day.purged", "day.removed"];

test.each(FAULTS.flatMap((point) => [1, 3].map((nth) => [point, nth] as const)))(
  "a process killed at %s, pass number %i, leaves each record once",
  async (point, nth) => {
    await using days = new Days();
    for (const day of [0, 1, 2, 3]) await days.add(day, 80);
    const all = await seenOnce(days);
    await days.database.close();
    // Days that are purged are no more, and their number is.
    const purges = point === "day.purged" || point === "day.removed";
    const before = purges ? momentOf(3) : "";
    const run = async (fault: string) => {
      const program = new URL("./close-process.ts", import.meta.url).pathname;
      const argv = ["bun", program, days.file, before];
      const child = Bun.spawn(argv, { env: { ...process.env, [FAULT_VARIABLE]: fault }, stderr: "pipe" });
      await child.exited;
      return { signal: child.signalCode, text: await new Response(child.stderr).text() };
    };
    const killed = await run(`${point}=kill@${nth}`);
    expect(killed).toMatchObject({ signal: "SIGKILL" });
    for (const fault of [null, "", ""]) {
      if (fault !== null) expect(await run(fault)).toEqual({ signal: null, text: "" });
      days.connection.close();
      days.reconnect();
      expect((await verdicts(days)).every(({ ok }) => ok)).toBe(true);
      const found = await seenOnce(days);
      if (purges) expect(all.slice(-found.length)).toEqual(found);
      else expect(found).toEqual(all);
    }
    expect(count(days)).toBe(purges ? 9 : 0);
    const recorded = days.queries.all<{ name: string }>("SELECT name FROM audit_files").map(({ name }) => name);
    expect(readdirSync(days.directory).sort()).toEqual(recorded.sort());
  },
  60_000,
);

/** All records that are no purges, of all chains, in the order of their time and chain. */
async function seenOnce({ queries }: Days) {
  const all = CHAINS.flatMap((org_id) => [...scanAudit(queries, { org_id, order: "asc" }, 50)].flat());
  const order = (row: (typeof all)[number]) => `${row.at} ${row.org_key} ${row.seq}`;
  return all
    .filter(({ event }) => event !== PURGED)
    .map(order)
    .sort();
}

describe("a file without a row in the database", () => {
  test("is removed by the next run if a crash has left it, also before that day is closed again", async () => {
    await using days = new Days();
    for (const day of [0, 1]) await days.add(day);
    await days.close();
    const whole = await seenOnce(days);
    const file = join(days.directory, "2026-01-01.db");
    for (const left of ["2026-01-01-2.db", "2026-01-09.db"]) copyFileSync(file, join(days.directory, left));
    await days.close();
    expect(readdirSync(days.directory).sort()).toEqual(["2026-01-01.db", "2026-01-02.db"]);
    expect(await seenOnce(days)).toEqual(whole);
  });

  test("of a database that was set back stays as it is until its retention is over", async () => {
    await using days = new Days();
    await days.add(0);
    await days.database.close();
    copyFileSync(days.file, `${days.file}.older`);
    days.reconnect();
    for (const day of [0, 1]) await days.add(day, 30);
    await days.close();
    await days.database.close();
    const closed = ["2026-01-01.db", "2026-01-02.db"];
    const before = closed.map((name) => readFileSync(join(days.directory, name)).toString("hex"));
    for (const left of ["-wal", "-shm"]) rmSync(`${days.file}${left}`, { force: true });
    copyFileSync(`${days.file}.older`, days.file);
    days.reconnect();
    await days.add(1, 10);
    await days.close();
    const all = [...closed, "2026-01-01-2.db", "2026-01-02-2.db"].sort();
    expect(readdirSync(days.directory).sort()).toEqual(all);
    expect(closed.map((name) => readFileSync(join(days.directory, name)).toString("hex"))).toEqual(before);
    expect((await verdicts(days)).every(({ ok }) => ok)).toBe(true);
    await purgeDays(days.deps, momentOf(1));
    expect(readdirSync(days.directory)).not.toContain("2026-01-01.db");
    expect(readdirSync(days.directory)).toContain("2026-01-02.db");
  });
});

describe("a purge of closed days", () => {
  test("deletes whole days, each chain has a record of it, and files are removed after a delay", async () => {
    await using days = new Days();
    for (const day of [0, 1, 2]) await days.add(day);
    await days.close();
    const hash = hashAt(days.queries, chainKey(ORG), 2 * ORG_RECORDS);
    await purgeDays(days.deps, momentOf(2));
    expect(chainStart(days.queries, chainKey(ORG))).toEqual({ seq: 2 * ORG_RECORDS, hash });
    expect((await verdicts(days)).every(({ ok }) => ok)).toBe(true);
    expect(listAudit(days.queries, { org_id: ORG, order: "asc", limit: 1000 }).map(({ seq }) => seq)).toEqual(
      Array.from({ length: ORG_RECORDS + 2 }, (_, index) => 2 * ORG_RECORDS + index + 1),
    );
    expect(readdirSync(days.directory)).toHaveLength(3);
    await days.close();
    expect(readdirSync(days.directory)).toHaveLength(3);
    vi.useFakeTimers({ now: Date.now() + 3_700_000, toFake: ["Date"] });
    try {
      await days.close();
      // In the last hour of a day, the purge's record is of a closed day by then.
      expect(readdirSync(days.directory).filter((name) => name < "2026-02")).toEqual(["2026-01-03.db"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("stops at the first day with a record to keep", async () => {
    await using days = new Days();
    for (const day of [0, 1]) await days.add(day);
    await days.close();
    await purgeDays(days.deps, momentOf(0.5));
    expect(chainStart(days.queries, chainKey(ORG))).toBeNull();
  });
});

/** Target of a descriptor; empty if it is closed by now. */
function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

/** Of the first organization, of a day. */
const ORG_RECORDS = Array.from({ length: RECORDS }, (_, n) => n).filter((n) => n % 10 !== 0 && n % 4 !== 0).length;

describe("a damaged closed day", () => {
  const name = "2026-01-02.db";
  const broken = (days: Days) => verdicts(days).then((all) => all.find(({ org_id }) => org_id === ORG));

  test("is reported as missing if its file is deleted", async () => {
    await using days = new Days();
    for (const day of [0, 1, 2]) await days.add(day);
    await days.close();
    rmSync(join(days.directory, name));
    await days.reopen();
    expect(await broken(days)).toMatchObject({ ok: false, broken_at: ORG_RECORDS + 1 });
  });

  test("is reported as missing if its file is truncated or not a database", async () => {
    await using days = new Days();
    for (const day of [0, 1, 2]) await days.add(day);
    await days.close();
    const file = join(days.directory, name);
    chmodSync(file, 0o600);
    truncateSync(file, 4096);
    await days.reopen();
    expect(await broken(days)).toMatchObject({ ok: false, broken_at: ORG_RECORDS + 1 });
    writeFileSync(file, "not one");
    await days.reopen();
    expect(await broken(days)).toMatchObject({ ok: false, broken_at: ORG_RECORDS + 1 });
  });

  test("is reported if a byte of a record has changed", async () => {
    await using days = new Days();
    for (const day of [0, 1, 2]) await days.add(day);
    await days.close();
    const file = join(days.directory, name);
    const bytes = readFileSync(file);
    const place = bytes.indexOf("exe_1_57");
    expect(place).toBeGreaterThan(0);
    bytes.write("exe_9", place);
    chmodSync(file, 0o600);
    writeFileSync(file, bytes);
    await days.reopen();
    const verdict = await broken(days);
    expect(verdict).toMatchObject({ ok: false });
    const [row] = listAudit(days.queries, {
      org_id: ORG,
      order: "asc",
      after: (verdict?.broken_at ?? 0) - 1,
      limit: 1,
    });
    expect(row?.details).toContain("exe_9_57");
  });
});

test.each([
  "DELETE FROM audit_files",
  "UPDATE audit_files SET sha256 = ''",
  "UPDATE audit_files SET removed_at = '2026'",
  "DELETE FROM audit_stretches",
  "UPDATE audit_stretches SET last_seq = 1",
  `INSERT INTO audit_stretches SELECT org_key, last_seq + 5, last_hash, last_seq + 1, first_at, last_at, 9 FROM audit_stretches`,
  "DELETE FROM audit",
  "INSERT INTO audit SELECT * FROM audit WHERE false UNION ALL SELECT org_key, 1, audit_id, event, outcome, at, org_id, room_id, room_uid, agent_id, sandbox_id, actor_type, actor_id, actor_name, source, request_id, ip, status, error_code, duration_ms, details, prev_hash, hash FROM audit",
])("the database refuses %s", async (statement) => {
  await using days = new Days();
  await days.add(0);
  await days.close();
  vi.useFakeTimers({ now: Date.parse(momentOf(1)), toFake: ["Date"] });
  try {
    await days.add(1, 20);
    expect(() => days.connection.execute(statement)).toThrow(/append-only/);
  } finally {
    vi.useRealTimers();
  }
});

test("a record of a closed day is found by its id, and that of an execution by its name", async () => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day);
  const [expected] = listAudit(days.queries, { org_id: ORG, order: "asc", after: 30, limit: 1 });
  await days.close();
  const within = { org_id: ORG, room_uids: null, agent_id: null };
  const found = await readHere(
    readRecord,
    days.queries,
    { within, wanted: { audit_id: expected?.audit_id ?? "" } },
    everyone,
  );
  expect(parsed(found)).toMatchObject({ seq: 31 });
});

test("a signal ends closing between two steps, and no record is lost", async () => {
  await using days = new Days();
  for (const day of [0, 1]) await days.add(day);
  const all = await seenOnce(days);
  const ending = new AbortController();
  const closing = closeDays(days.deps, ending.signal);
  ending.abort();
  await closing;
  expect(existsSync(join(days.directory, "2026-01-01.db"))).toBe(false);
  expect(await seenOnce(days)).toEqual(all);
});

describe("a walk on the event loop", () => {
  const room = { org_id: ORG, room_uid: "rom_1" };
  const ofExecutions = ({ queries }: Days) => executionRecords(queries, { ...room, sandbox_id: "sbx_1" }, ["exe_none"]);
  const ofEvents = ({ queries }: Days) => new RoomNumbers(queries, room).taken();

  test.each([
    ["of executions", ofExecutions],
    ["of a room's events", ofEvents],
  ])("%s opens one closed day in a step", async (_, scan) => {
    await using days = new Days();
    for (const day of [0, 1, 2, 3, 4, 5]) await days.add(day, 20);
    await days.close();
    await days.reopen();
    const openFiles = () => readdirSync("/proc/self/fd").filter((fd) => linkOf(fd).startsWith(days.directory)).length;
    const counts = [openFiles()];
    for (const steps = scan(days); ; ) {
      const { done } = steps.next();
      counts.push(openFiles());
      if (done) break;
    }
    const opened = counts.slice(1).map((count, index) => count - (counts[index] ?? 0));
    expect([counts.at(-1), Math.max(...opened)]).toEqual([6, 1]);
  });

  test("of a room's events leaves out those of a lost day", async () => {
    await using days = new Days();
    for (const day of [0, 1, 2]) await days.add(day, 30);
    const all = wholly(ofEvents(days)).rows;
    await days.close();
    rmSync(join(days.directory, "2026-01-02.db"));
    await days.reopen();
    expect(wholly(ofEvents(days)).rows).toEqual(all.filter(({ at }) => !at.startsWith("2026-01-02")));
  });
});

test("a reader of events that waited while days were closed reads them in reader threads", async () => {
  await using days = new Days();
  await days.add(0);
  const bells = new Notifier();
  let reads = 0;
  const read: typeof readHere = (...call) => {
    reads++;
    return readHere(...call);
  };
  const { operations } = makeEvents(
    {
      ...{ database: days.database, log: makeLog("error"), bells, anchors: null, others: null, slowReaderMs: 1_000 },
      reads: { read: (what, input, by) => read(what, days.queries, input, by) } as Reads,
      findRoom: () => ({ org_id: ORG, room_uid: "rom_1" }) as never,
      findOrg: () => ORG,
    },
    new Readers(),
  );
  const reading = new AbortController();
  const call = { caller: { org_id: ORG }, signal: reading.signal };
  const follow = operations.find(({ operation }) => operation === orgEvents);
  const done = await follow?.run(call as never, {}, ORG, { last_event_id: null } as never);
  const received: number[] = [];
  const stream = done?.events?.events ?? (async function* () {})();
  const next = async () => {
    const { value } = await stream.next();
    received.push(...(value ?? []).map(({ data }: { data: unknown }) => (data as { seq: number }).seq));
  };
  const first = chainEnd(days.queries, chainKey(ORG))?.seq ?? 0;
  const waiting = next();
  await nextTurn();
  for (let day = 1; day <= 20; day++) await days.add(day, 5);
  await days.close();
  const last = chainEnd(days.queries, chainKey(ORG))?.seq ?? 0;
  bells.ringAll(topicGroup(chainKey(ORG)));
  await waiting;
  while ((received.at(-1) ?? 0) < last) await next();
  expect(received).toEqual(Array.from({ length: last - first }, (_, n) => first + 1 + n));
  expect(reads).toBeGreaterThan(0);
  reading.abort();
  await stream.return(undefined);
});
