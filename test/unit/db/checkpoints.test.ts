/** A real database's log is written into it by a thread, while commits go on; closing leaves nothing held. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DiskFailure } from "../../../daemon/core/disk-failure.ts";
import { makeCheckpoints } from "../../../daemon/db/checkpoints.ts";
import { type Connection, openConnection, rawQuery } from "../../../daemon/db/client.ts";
import { makeLogSync } from "../../../daemon/db/log-sync.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import { until } from "../../harness/guests.ts";

let directory = "";
let file = "";
let connection: Connection;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-checkpoints-"));
  file = join(directory, "roomd.db");
  connection = openConnection(file);
  connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)");
});
afterEach(() => rmSync(directory, { recursive: true }));

const onLost = (error: Error) => {
  throw error;
};
const opened = () =>
  makeDatabase(
    connection,
    () => false,
    makeLogSync(file, () => {}),
    makeCheckpoints(file, connection, onLost),
  );
const TEXT = "x".repeat(3000);
const write = (database: ReturnType<typeof makeDatabase>) =>
  database.commit((queries) => void rawQuery(queries, "INSERT INTO t (text) VALUES (?)")([TEXT]));

test("commits are written into the file, and the log restarts", async () => {
  const database = opened();
  await write(database);
  // The thread may be late at first.
  await until("the file contains the committed rows", async () => {
    for (let count = 0; count < 64; count++) await write(database);
    return statSync(file).size > 300 * TEXT.length;
  });
  // A commit waits for the last pages, so that the log restarts.
  for (let count = 0; count < 3000; count++) await write(database);
  const before = statSync(`${file}-wal`).size;
  for (let count = 0; count < 2000; count++) await write(database);
  // Growth during the last checkpoint of the thread.
  expect(statSync(`${file}-wal`).size).toBeLessThan(before + 1024 ** 2);
  await database.close();
});

test("pages that a reader held back are left to the thread, and the log restarts afterwards", async () => {
  const executed: string[] = [];
  const seen = {
    ...connection,
    execute: (sql: string) => {
      executed.push(sql);
      connection.execute(sql);
    },
  };
  const database = makeDatabase(
    seen,
    () => false,
    makeLogSync(file, () => {}),
    makeCheckpoints(file, seen, onLost),
  );
  await write(database);
  const reader = openConnection(file, { alone: false });
  reader.execute("BEGIN");
  rawQuery(reader.queries, "SELECT count(*) FROM t")([]);
  for (let count = 0; count < 4000; count++) await write(database);
  expect(connection.log().pages - connection.log().written).toBeGreaterThan(3000);
  expect(executed.filter((sql) => sql.includes("checkpoint"))).toEqual([]);
  reader.execute("COMMIT");
  reader.close();
  await until("the log restarts from its beginning", async () => {
    for (let count = 0; count < 64; count++) await write(database);
    return connection.log().pages < 3000;
  });
  await database.close();
});

test("the thread syncs the header of a log that restarts, and the event loop syncs nothing", () => {
  const sources = ["client", "transact", "log-sync", "checkpoints"].map((name) => resolve(`daemon/db/${name}.ts`));
  const script = `
    const [client, transact, log, thread] = await Promise.all(${JSON.stringify(sources)}.map((source) => import(source)));
    const file = ${JSON.stringify(file)};
    const connection = client.openConnection(file);
    const checkpoints = thread.makeCheckpoints(file, connection, (error) => { throw error; });
    const database = transact.makeDatabase(connection, () => false, log.makeLogSync(file, () => {}), checkpoints);
    const write = () => database.commit((queries) => queries.run("INSERT INTO t (text) VALUES (zeroblob(20000))"));
    await write();
    require("node:fs").writeFileSync(file + ".begins", "");
    let restarts = 0;
    for (let before = 0; restarts < 2; before = connection.log().pages) {
      await write();
      if (connection.log().pages < before) restarts++;
    }
    // A log that is short restarts too, once it is written into the file.
    await checkpoints.run();
    await write();
    require("node:fs").writeFileSync(file + ".ends", "");
    await database.close();
  `;
  connection.close();
  const calls = join(directory, "calls");
  execFileSync("strace", ["-f", "-y", "-e", "trace=fsync,openat", "-o", calls, process.execPath, "-e", script]);
  const lines = readFileSync(calls, "utf8").split("\n");
  const at = (name: string) => lines.findIndex((line) => line.includes(`${file}.${name}`));
  const main = lines[at("begins")]?.split(" ")[0] ?? "";
  const syncs = lines.slice(at("begins"), at("ends")).filter((line) => line.includes(" fsync("));
  expect(syncs.filter((line) => line.startsWith(`${main} `))).toEqual([]);
  expect(syncs.filter((line) => line.includes("-wal>")).length).toBeGreaterThan(3);
});

test("closing leaves no lock and no log, and no commit is lost", async () => {
  const database = opened();
  for (let count = 0; count < 500; count++) await write(database);
  await database.close();
  const again = openConnection(file);
  expect(rawQuery<{ count: number }>(again.queries, "SELECT count(*) AS count FROM t")([])).toEqual([{ count: 500 }]);
  expect(rawQuery(again.queries, "PRAGMA wal_checkpoint(TRUNCATE)")([])).toMatchObject([{ busy: 0 }]);
  again.close();
});

test("a thread that cannot open the database fails, and closing does not wait for it", async () => {
  const log = () => ({ pages: 0, written: 0 });
  const lost = Promise.withResolvers<Error>();
  const checkpoints = makeCheckpoints(join(directory, "none", "roomd.db"), { log }, lost.resolve);
  expect(await lost.promise).toBeInstanceOf(DiskFailure);
  expect(checkpoints.hasFailed()).toBe(true);
  const startedAt = performance.now();
  checkpoints.close();
  expect(performance.now() - startedAt).toBeLessThan(4000);
  connection.close();
});
