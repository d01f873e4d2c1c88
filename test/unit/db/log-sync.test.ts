/** Flushing the log of a real database by a thread: in order, and with its error. */
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import type { FlushLatency } from "../../../daemon/db/flush-latency.ts";
import { makeLogSync, rewriteLog, writeWholeLog } from "../../../daemon/db/log-sync.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";
import { until } from "../../harness/guests.ts";

let directory = "";
let file = "";
let connection: Connection;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-log-"));
  file = join(directory, "roomd.db");
  connection = openConnection(file);
  connection.execute("CREATE TABLE t (n INTEGER)");
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Descriptors of this process that are open on the log. */
const openOnLog = () =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === `${file}-wal`;
    } catch {
      return false;
    }
  });

test("commits are flushed by the thread, at any rate, and closing leaves nothing open", async () => {
  const before = openOnLog().length;
  const database = makeDatabase(
    connection,
    () => false,
    makeLogSync(file, () => {}),
  );
  for (let round = 0; round < 20; round++) {
    const work = Array.from({ length: 5 }, () => database.commit((queries) => queries.run("INSERT INTO t VALUES (1)")));
    await Promise.all(work);
  }
  await database.close();
  expect(openOnLog().length).toBeLessThanOrEqual(before);
  const again = openConnection(file);
  expect(again.queries.all("SELECT count(*) AS n FROM t")).toEqual([{ n: 100 }]);
  again.close();
});

/** Of a disk that is always quick. */
const TRUST = { isQuick: () => true, took: () => {} } as unknown as FlushLatency;

test("on a quick disk nothing is awaited, and a failure still makes its flush the last", async () => {
  const quick = makeLogSync(file, () => {}, TRUST);
  // Retried, since the thread has just started and a disk may be slow once.
  await until("a commit completes before its flush", async () => {
    const flushed = quick.sync();
    await flushed;
    return flushed === null || undefined;
  });
  quick.close();
  const other = join(directory, "other.db");
  symlinkSync("/dev/null", `${other}-wal`);
  const lost: string[] = [];
  const reported = Promise.withResolvers<void>();
  const log = makeLogSync(
    other,
    ({ message }) => {
      lost.push(message);
      reported.resolve();
    },
    TRUST,
  );
  const settled: unknown[] = [];
  const note = (how: unknown) => void settled.push(how);
  const syncs = [log.sync(), log.sync()];
  for (const each of syncs) each?.then(note, note);
  await reported.promise;
  const good = makeLogSync(file, () => {});
  await good.sync();
  expect([syncs.includes(null), lost.length, settled]).toEqual([false, 1, []]);
  expect(lost[0]).toContain("EINVAL");
  log.close();
  good.close();
  connection.close();
});

test("a log that cannot be flushed is reported once, and no later commit is confirmed", async () => {
  const other = join(directory, "other.db");
  symlinkSync("/dev/null", `${other}-wal`);
  const lost = Promise.withResolvers<Error>();
  let times = 0;
  const log = makeLogSync(other, (error) => {
    times++;
    lost.resolve(error);
  });
  const settled: unknown[] = [];
  const note = (how: unknown) => void settled.push(how);
  for (let n = 0; n < 3; n++) log.sync()?.then(note, note);
  expect((await lost.promise).message).toContain("EINVAL");
  // All three were sent in order: the thread has answered the last by the time that another has answered.
  const good = makeLogSync(file, () => {});
  await good.sync();
  expect([times, settled]).toEqual([1, []]);
  log.close();
  good.close();
  connection.close();
});

test("a previous daemon's log is rewritten unchanged before anything is appended", () => {
  connection.execute("INSERT INTO t VALUES (7)");
  // As a daemon leaves it that is killed.
  const left = join(directory, "left.db");
  for (const suffix of ["", "-wal"]) copyFileSync(`${file}${suffix}`, `${left}${suffix}`);
  connection.close();
  const again = openConnection(left);
  const before = readFileSync(`${left}-wal`);
  utimesSync(`${left}-wal`, 0, 0);
  rewriteLog(again, left);
  expect([readFileSync(`${left}-wal`).equals(before), before.length > 4096]).toEqual([true, true]);
  expect(statSync(`${left}-wal`).mtimeMs).toBeGreaterThan(0);
  expect(again.queries.all("SELECT n FROM t")).toEqual([{ n: 7 }]);
  again.execute("INSERT INTO t VALUES (8)");
  again.close();
  // Without a log there is nothing to rewrite.
  const fresh = openConnection(left);
  rewriteLog(fresh, left);
  expect(fresh.queries.all("SELECT count(*) AS n FROM t")).toEqual([{ n: 2 }]);
  fresh.close();
});

/** The database as it is after a loss of power that took every page which was written into it and not synced. */
function losePages(path: string): void {
  const opened = openSync(path, "r+");
  const lost = Buffer.alloc(statSync(path).size - 4096);
  writeSync(opened, lost, 0, lost.length, 4096);
  closeSync(opened);
}

test("pages counted as written are rewritten from the log, unless another process has the database open", () => {
  connection.execute("INSERT INTO t VALUES (7)");
  const command = openConnection(file, { alone: false });
  connection.execute("PRAGMA wal_checkpoint(PASSIVE)");
  expect(connection.log().written).toBe(connection.log().pages);
  losePages(file);
  const wait = { aloneMs: 20 };
  expect(() => writeWholeLog(file, { afterFailure: true, ...wait })).toThrow("fuser");
  expect(writeWholeLog(file, { afterFailure: false, ...wait })).toEqual({ frames: 0, commits: 0 });
  expect(statSync(`${file}-wal`).size).toBeGreaterThan(0);
  // As the processes end: neither writes the log into the file, or removes it.
  const left = join(directory, "left.db");
  for (const suffix of ["", "-wal"]) copyFileSync(`${file}${suffix}`, `${left}${suffix}`);
  command.close();
  connection.close();
  writeWholeLog(left, { afterFailure: true, ...wait });
  expect(existsSync(`${left}-wal`)).toBe(false);
  const again = openConnection(left);
  expect([again.queries.all("SELECT n FROM t"), again.pragma("integrity_check")]).toEqual([[{ n: 7 }], "ok"]);
  again.close();
});

test("a command that is the last to close the database leaves its log unchanged", () => {
  const command = openConnection(file, { alone: false });
  command.execute("INSERT INTO t VALUES (7)");
  const { size } = statSync(`${file}-wal`);
  connection.close();
  const other = openConnection(file, { alone: false });
  other.execute("INSERT INTO t VALUES (8)");
  command.close();
  other.close();
  expect([size > 0, statSync(`${file}-wal`).size > 0]).toEqual([true, true]);
  writeWholeLog(file, { afterFailure: false });
  const again = openConnection(file);
  expect(again.queries.all("SELECT n FROM t")).toEqual([{ n: 7 }, { n: 8 }]);
  again.close();
});

test("commits behind a damaged frame are counted", () => {
  for (const n of [1, 2, 3]) connection.execute(`INSERT INTO t VALUES (${n})`);
  const left = join(directory, "left.db");
  for (const suffix of ["", "-wal"]) copyFileSync(`${file}${suffix}`, `${left}${suffix}`);
  connection.close();
  const log = openSync(`${left}-wal`, "r+");
  const frame = 24 + 4096;
  // The last three frames are one commit each.
  writeSync(log, Buffer.alloc(512), 0, 512, statSync(`${left}-wal`).size - 2 * frame + 24);
  closeSync(log);
  expect(writeWholeLog(left, { afterFailure: false })).toEqual({ frames: 2, commits: 2 });
  const again = openConnection(left);
  expect(again.queries.all("SELECT n FROM t")).toEqual([{ n: 1 }]);
  again.close();
});

test("a missing database has no log to flush", () => {
  expect(() => makeLogSync(join(directory, "none.db"), () => {})).toThrow("ENOENT");
  connection.close();
});
