/**
 * Several hosts in one process, by seeds: invariants hold in any order of messages, faults and calls. ROOMD_TEST_LONG=1 has ten
 * thousand seeds. The PostgreSQL of the simulation is a model: its answers are those of a server.
 */
import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import type { Run } from "../../../daemon/cluster/connections.ts";
import { Copy } from "../../../daemon/cluster/copy.ts";
import { lackingRows } from "../../../daemon/cluster/put-again.ts";
import { missingKeys, readChanges } from "../../../daemon/cluster/replica.ts";
import { writeRows } from "../../../daemon/cluster/rounds.ts";
import { forgetOld, makeSchema, whoFreed } from "../../../daemon/cluster/schema.ts";
import { openSession, type Session } from "../../../daemon/cluster/session.ts";
import { SHARED_TABLES } from "../../../daemon/cluster/table.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { SharedRows } from "../../../daemon/db/shared-rows.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import { LONG, shortOrLong } from "../../harness/guests.ts";
import { Postgres, whyNoPostgres } from "../../harness/hosts/postgres.ts";
import { firstState, ORG } from "../../harness/simulation/first-state.ts";
import { MUTATIONS } from "../../harness/simulation/mutations.ts";
import { PostgresModel, type Recorded, ServerSession } from "../../harness/simulation/postgres.ts";
import { World } from "../../harness/simulation/world.ts";

const MAIN = join(import.meta.dirname, "../../harness/simulation/main.ts");
const HOSTS = ["host-1", "host-2"];
/** Processor time of one core. */
const SECONDS = LONG ? 7_200 : 120;
/** Seeds that found faults of the daemon or of the simulation. */
const FORMER_FAILURES = [1031, 4637, 4984, 5663, 9231, 11_025, 21_042, 104_140, 105_278, 105_660];
/** Enough to find each fault of the table. */
const SEEDS_OF_MUTATION = 2_000;

interface Total {
  seeds: number;
  failed: number;
  acknowledged: number;
  hashes: Record<string, string>;
}

async function simulations(...given: (string | number)[]): Promise<{ lines: string[]; total: Total }> {
  const child = Bun.spawn([process.execPath, MAIN, ...given.map(String)], { stdout: "pipe", stderr: "inherit" });
  const lines = (await new Response(child.stdout).text()).trim().split("\n");
  return { lines, total: JSON.parse(lines.at(-1) ?? "{}") as Total };
}

describe("simulations of several hosts", () => {
  test(
    "hold all invariants, for every seed",
    async () => {
      const count = shortOrLong("seeds of simulated hosts", 500, 10_000);
      const { lines, total } = await simulations(1, count, "--seconds", SECONDS);
      console.log(`simulated hosts: ${total.seeds} seeds, ${total.acknowledged} calls that were answered`);
      const failed = lines
        .slice(0, -1)
        .map((line) => `${line}\nagain: bun test/harness/simulation/main.ts ${JSON.parse(line).seed} --trace`);
      expect(failed).toEqual([]);
      expect(total.seeds).toBeGreaterThan(50);
    },
    LONG ? 14_400_000 : 600_000,
  );

  test.each(FORMER_FAILURES)("hold all invariants for seed %i, which failed before", async (seed) => {
    expect((await simulations(seed)).total).toMatchObject({ seeds: 1, failed: 0 });
  });

  test.each(Object.keys(MUTATIONS))(
    "fail if, by a fault in the daemon, %s",
    async (name) => {
      const { lines, total } = await simulations(1, SEEDS_OF_MUTATION, "--until-failure", "--mutation", name);
      expect(total.failed).toBe(1);
      // Without the fault the same seed passes.
      const { seed } = JSON.parse(lines.at(-2) ?? "{}") as { seed: number };
      expect((await simulations(seed)).total).toMatchObject({ seeds: 1, failed: 0 });
    },
    600_000,
  );

  test("are reproducible by their seed, alone and after others", async () => {
    const [range, single] = await Promise.all([simulations(7, 3), simulations(9)]);
    expect(Object.keys(range.total.hashes)).toEqual(["7", "8", "9"]);
    expect(single.total.hashes).toEqual({ "9": range.total.hashes["9"] });
    expect(new Set(Object.values(range.total.hashes)).size).toBe(3);
  });
});

const reason = whyNoPostgres();
if (reason !== null) console.log(`the model of PostgreSQL: not compared, because ${reason}`);

describe.skipIf(reason !== null)("the model of PostgreSQL", () => {
  let server: Postgres;
  beforeAll(async () => {
    server = await Postgres.start({ settings: { fsync: "off" } });
  }, 60_000);
  afterAll(() => server?.[Symbol.asyncDispose]());

  async function opened(): Promise<Session> {
    const [address] = readAddresses(server.url());
    if (!address) throw new Error("there is no address");
    const { session, opened } = await openSession({ address });
    await opened;
    return session;
  }

  /** The initial state of simulations. */
  async function begin(hosts: readonly string[]): Promise<void> {
    await server.sql("DROP SCHEMA IF EXISTS roomd CASCADE");
    const session = await opened();
    await makeSchema((text, values) => session.run(text, values));
    const state = firstState(hosts, Date.UTC(2026, 0, 1));
    await session.run("INSERT INTO roomd.cluster (cluster_id, version, seq) VALUES ('cluster', 1, 1)");
    await session.run("INSERT INTO roomd.changes (seq, change_id, host_id) VALUES (1, 'first', 'host-1')");
    for (const { tbl, key, row } of state.rows.values())
      await session.run("INSERT INTO roomd.rows VALUES ($1, $2, $3, 1)", [tbl, key, JSON.stringify(row)]);
    for (const { host_id, incarnation } of state.leases.values())
      await session.run(
        "INSERT INTO roomd.leases (host_id, incarnation, version, lease_until, load) VALUES ($1, $2, '', '2026-01-01T00:00:00Z', '{}')",
        [host_id, incarnation],
      );
    session.discard();
  }

  test.each([11, 12, 13, 14])("answers the statements of simulation %i as a server does", async (seed) => {
    const file = join(tmpdir(), `roomd-statements-${process.pid}-${seed}.json`);
    // Without faults by which the database itself is another afterwards.
    await simulations(seed, 1, "--statements", file, "--steady");
    const { hosts, recorded } = JSON.parse(readFileSync(file, "utf8")) as { hosts: string[]; recorded: Recorded[] };
    rmSync(file);
    await begin(hosts);
    const sessions = new Map<number, Session>();
    const kinds = new Set<string>();
    for (const { session, text, values, nowMs, waited, answer } of recorded) {
      const by = sessions.get(session) ?? (await opened());
      sessions.set(session, by);
      if (/pg_is_in_recovery/.test(text)) continue;
      // It waited for the lock of another: here nothing waits, and its transaction fails as well.
      if (answer !== null && "code" in answer && answer.code === "57014") {
        await by.run("SELECT 1 / 0").catch(() => {});
        continue;
      }
      const at = `'${new Date(nowMs).toISOString()}'::timestamptz`;
      const real = await by
        .run(text.replaceAll("now()", at).replace(/_timeout = \d+/g, "_timeout = 3000"), values)
        .then(
          ({ command, rows }) => ({ command, rows }),
          (error: unknown) => ({ code: String((error as { code?: unknown }).code) }),
        );
      kinds.add(text.replace(/\s+/g, " ").slice(0, 60));
      // Here it has waited for nothing, and sees more; another test compares a statement that waits.
      if (answer !== null && !waited && !text.startsWith("BEGIN"))
        expect({ text, answer: normal(text, real) }).toEqual({ text, answer: normal(text, answer) });
    }
    for (const session of sessions.values()) session.discard();
    expect(kinds.size).toBeGreaterThan(12);
  });

  test("answers rare statements as a server does: released, missing and deleted items", async () => {
    const world = new World(1, "/nowhere", false);
    const session = new ServerSession(world, new PostgresModel(world, firstState(HOSTS, world.wallMs)), {
      notified: () => {},
      over: () => {},
    });
    const modelled: Run = (text, values = []) =>
      new Promise((resolve, reject) =>
        session.run(text, values, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer))),
      );
    await begin(HOSTS);
    const by = await opened();
    const real: Run = (text, values) => by.run(text, values);
    const same = async (work: (run: Run) => Promise<unknown>): Promise<unknown> => {
      const answer = meant(await work(real));
      expect(meant(await work(modelled))).toEqual(answer);
      return answer;
    };
    const point = (seq: number) => ({ seq, change_id: `change ${seq}` });
    const change = async (seq: number, host: string, ...rows: [tbl: string, key: string, row: object | null][]) =>
      await same((run) =>
        writeRows(
          run,
          point(seq),
          rows.map(([tbl, key, row]) => ({ tbl, key: JSON.stringify([key]), row: row && JSON.stringify(row) })),
          host,
        ),
      );
    const room = (room_uid: string) => ({ room_uid, org_id: ORG, room_id: room_uid, host_id: "host-1", epoch: 1 });
    const rooms = ["rom_1", "rom_2", "rom_3"].map((uid) => ["placements", uid, room(uid)] as [string, string, object]);
    await change(2, "host-1", ...rooms);
    await change(3, "host-2", ["placements", "rom_1", null]);
    await server.sql("UPDATE roomd.changes SET at = now() - interval '8 days'");
    world.runUntil(8 * 86_400_000);
    await change(4, "host-2", ["placements", "rom_2", null]);
    await change(5, "host-1", ["placements", "rom_3", null], ["hosts", "host-1", { state: "gone" }]);

    for (const [uid, freed] of [
      ["rom_1", { host_id: "host-2", isRemoval: false }],
      ["rom_3", { host_id: "host-1", isRemoval: true }],
      ["rom_4", null],
    ] as const)
      expect(await same((run) => whoFreed(run, uid))).toEqual(freed);
    const keys = ["rom_1", "rom_4"].map((uid) => JSON.stringify([uid]));
    expect(await same((run) => missingKeys(run, "placements", keys))).toEqual(keys);

    const connection = openConnection(":memory:");
    migrate(connection);
    const database = makeDatabase(connection);
    const copy = new Copy(database, new SharedRows(database.queries, SHARED_TABLES));
    const org = {
      org_id: "org_2",
      name: "one",
      plan: "starter",
      created_at: "2026-01-01T00:00:00.000Z",
      plan_by: "operator",
    };
    const lacked = { tbl: "orgs", key: '["org_2"]' };
    await copy.bring(copy.point, [{ ...lacked, row: JSON.stringify(org) }], copy.point);
    const again = await same((run) =>
      lackingRows(
        run,
        copy,
        [lacked, { tbl: "orgs", key: JSON.stringify([ORG]) }].map((name) => ({ ...name, isLacking: true })),
        true,
      ),
    );
    expect(again).toMatchObject([{ ...lacked, row: { ...org, name: "one org_2" } }]);
    connection.close();

    expect(await same(forgetOld)).toBe(4);
    expect(await same(forgetOld)).toBe(0);
    const known = (seq: number) => (run: Run) =>
      readChanges(run, point(seq), null, null, { cluster_id: "cluster", host_id: "host-1" }, 1_000);
    expect(await same(known(3))).toMatchObject({ changes: null });
    expect(await same(known(4))).toMatchObject({ changes: { own: [point(5)], isLast: true } });
    by.discard();
  });

  test("evaluates a locking read as a server does: the newest locked row, all others of the snapshot", async () => {
    await begin(HOSTS);
    const lock = `SELECT cluster_id = $1 AND EXISTS (SELECT FROM roomd.leases WHERE host_id = $2 AND incarnation = $3) AS is_member
      FROM roomd.cluster FOR UPDATE`;
    const values = ["cluster", "host-2", "of host-2"];
    const [a, b] = [await opened(), await opened()];
    await a.run("BEGIN");
    await a.run("SELECT FROM roomd.cluster FOR UPDATE");
    await b.run("BEGIN");
    const waiting = b.run(lock, values);
    await server.sql("SELECT pg_sleep(0.1)");
    await a.run("DELETE FROM roomd.leases WHERE host_id = $1", ["host-2"]);
    await a.run("UPDATE roomd.cluster SET seq = $1", [2]);
    await a.run("COMMIT");
    const real = [(await waiting).rows, (await b.run(lock, values)).rows];
    for (const each of [a, b]) each.discard();

    const world = new World(1, "/nowhere", false);
    const model = new PostgresModel(world, firstState(HOSTS, world.wallMs));
    const [c, d] = [0, 1].map(() => new ServerSession(world, model, { notified: () => {}, over: () => {} })) as [
      ServerSession,
      ServerSession,
    ];
    const results: unknown[] = [];
    const run = (session: ServerSession, text: string, given: unknown[] = []) =>
      session.run(text, given, (answer) => results.push(answer instanceof Error ? answer : answer.rows));
    run(c, "BEGIN;");
    run(c, "SELECT FROM roomd.cluster FOR UPDATE");
    run(d, "BEGIN;");
    results.length = 0;
    run(d, lock, values);
    expect(results).toEqual([]);
    run(c, "DELETE FROM roomd.leases WHERE host_id = $1", ["host-2"]);
    run(c, "UPDATE roomd.cluster SET seq = $1", [2]);
    run(c, "COMMIT");
    results.length = 0;
    world.runUntil(1);
    run(d, lock, values);
    expect(results).toEqual(real);
  });
});

/** JSON in texts as it is meant. */
const meant = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null), (_, each) =>
    typeof each === "string" && each.startsWith("{") ? JSON.parse(each) : each,
  );

/** Rows in an order of their own, unless the statement has one; numbers and JSON as they are meant. */
function normal(
  text: string,
  answer: { command: string; rows: Record<string, unknown>[] } | { code: string },
): unknown {
  if ("code" in answer) return answer;
  const rows = answer.rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, value === null ? null : normalValue(name, value)]),
    ),
  );
  if (!text.includes("ORDER BY")) rows.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
  return { command: answer.command, rows };
}

function normalValue(name: string, value: unknown): unknown {
  // Its text is for comparison alone.
  if (name === "others_until") return true;
  if (name === "row") return JSON.parse(String(value));
  if (name === "rows") return (value as [string, string][]).map(([key, row]) => [key, JSON.parse(row)]);
  return typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
}
