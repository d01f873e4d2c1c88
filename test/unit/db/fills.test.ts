/** Tables of a version to come that are rewritten in pieces: while others commit, over kills at any piece, and before a migration that needs it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openConnection, rawStatement } from "../../../daemon/db/client.ts";
import { fills, runFills } from "../../../daemon/db/fills.ts";
import { fillsOf, latestVersion, MIGRATIONS, migrate } from "../../../daemon/db/migrate.ts";
import { CONTRACTED, EXPANDED, openAsDaemon, startFilling } from "../../harness/durability/next-version.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";
import { until } from "../../harness/guests.ts";

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-fills-"));
  file = join(directory, "roomd.db");
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A database of this version with agents. */
function madeOld(agents: number): void {
  const connection = openConnection(file);
  migrate(connection);
  const insert = rawStatement(connection.queries, "INSERT INTO agents VALUES (?, ?, '[]', 't')");
  connection.execute("BEGIN");
  for (let n = 0; n < agents; n++) insert([`rom_${n % 997}`, `agent-${n}`]);
  connection.execute("COMMIT");
  connection.close();
}

function inDatabase<T>(work: (connection: ReturnType<typeof openConnection>) => T): T {
  const connection = openConnection(file);
  try {
    return work(connection);
  } finally {
    connection.close();
  }
}
const expand = () => inDatabase((connection) => migrate(connection, { migrations: EXPANDED }));
const fillsLeft = () =>
  inDatabase(({ queries }) =>
    queries
      .select()
      .from(fills)
      .orderBy(fills.name)
      .all()
      .map(({ name }) => name),
  );

/** All rows are in the new table, as they are to be, and none in the old. */
function expectFilled(agents: number, table = "agents_next"): void {
  inDatabase(({ queries, pragma }) => {
    const [found] = queries.all(
      `SELECT count(*) AS rows, count(*) FILTER (WHERE label = agent_id || ' of ' || room_uid) AS labelled FROM ${table}`,
    );
    expect(found).toEqual({ rows: agents, labelled: agents });
    if (table !== "agents") expect(queries.all(sql`SELECT count(*) AS rows FROM agents`)).toEqual([{ rows: 0 }]);
    expect(pragma("integrity_check")).toBe("ok");
  });
}

test("200,000 rows are rewritten while others commit, without blocking the loop for long", {
  timeout: 120_000,
}, async () => {
  const agents = 200_000;
  madeOld(agents);
  expand();
  expect(fillsLeft()).toEqual(["agents.gone", "agents.label", "agents_next"]);
  const database = openAsDaemon(file);
  let isOver = false;
  let commits = 0;
  const filling = async () => {
    await runFills(database, fillsOf(EXPANDED), new AbortController().signal);
    isOver = true;
  };
  const others = async () => {
    while (!isOver) {
      await database.commit((queries) => queries.run(sql`UPDATE orgs SET name = name`));
      commits++;
    }
  };
  const longest = await longestTurn(() => Promise.all([filling(), others()]));
  await database.close();
  expect(longest).toBeLessThan(boundOf(20));
  expect(commits).toBeGreaterThan(100);
  expect(fillsLeft()).toEqual([]);
  expectFilled(agents);
});

test("a fill killed at any piece continues after the last committed one", {
  timeout: 120_000,
}, async () => {
  const agents = 60_000;
  madeOld(agents);
  expand();
  const watcher = openConnection(file, { alone: false });
  const progress = () =>
    JSON.stringify([
      watcher.queries.all(sql`SELECT * FROM fills`),
      // Rows of the growing table, and of the shrinking table.
      watcher.queries.all(sql`SELECT (SELECT count(*) FROM agents_next), (SELECT count(*) FROM agents)`),
    ]);
  let kills = 0;
  for (let isOver = false; !isOver; ) {
    const before = progress();
    const child = startFilling(file);
    await until(
      "a batch is filled or the child has exited",
      () => child.exitCode !== null || progress() !== before,
      30_000,
    );
    if (child.exitCode === null) {
      child.kill("SIGKILL");
      kills++;
    }
    await child.exited;
    isOver = child.exitCode === 0;
    if (kills === 8) break;
  }
  watcher.close();
  expect(kills).toBe(8);
  const child = startFilling(file);
  expect(await child.exited).toBe(0);
  expect(fillsLeft()).toEqual([]);
  expectFilled(agents);
});

test("each piece is a commit, and a stop ends the fill after the current piece", async () => {
  const agents = 300;
  madeOld(agents);
  expand();
  for (let stops = 0; fillsLeft().length > 0; stops++) {
    const database = openAsDaemon(file);
    const stop = new AbortController();
    // Each start gets one piece further.
    database.onCommit(() => stop.abort());
    await runFills(database, fillsOf(EXPANDED), stop.signal);
    await database.close();
    expect(stops).toBeLessThan(3 * Math.ceil(agents / 16) + 3);
  }
  expectFilled(agents);
});

test("a migration that requires a fill finishes it first, also if releases are skipped", () => {
  const agents = 25_000;
  madeOld(agents);
  let extensions = 0;
  inDatabase((connection) => {
    migrate(connection, { migrations: CONTRACTED, extendStart: () => void extensions++ });
    expect(connection.pragma("user_version")).toBe(latestVersion(CONTRACTED));
  });
  expect(extensions).toBeGreaterThan(CONTRACTED.length - MIGRATIONS.length);
  expect(fillsLeft()).toEqual([]);
  expectFilled(agents, "agents");
});
