/** Flushing the log of a real database by a thread: in order, and with its error. */
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import type { DiskTrust } from "../../../daemon/db/disk-trust.ts";
import { makeLogSync, rewriteLog } from "../../../daemon/db/log-sync.ts";
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

test("commits are flushed by the thread, however many come, and closing leaves nothing open", async () => {
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
const TRUST = { isQuick: () => true, took: () => {} } as unknown as DiskTrust;

test("while the disk is quick nothing is waited for, and a failure is the last flush all the same", async () => {
  const quick = makeLogSync(file, () => {}, TRUST);
  // The thread has begun, and a disk may be slow for once.
  await until("a flush is not waited for", async () => {
    const flushed = quick.sync();
    await flushed;
    return flushed === null || undefined;
  });
  quick.close();
  const other = join(directory, "other.db");
  symlinkSync("/dev/null", `${other}-wal`);
  const lost: string[] = [];
  const told = Promise.withResolvers<void>();
  const log = makeLogSync(
    other,
    ({ message }) => {
      lost.push(message);
      told.resolve();
    },
    TRUST,
  );
  const settled: unknown[] = [];
  const note = (how: unknown) => void settled.push(how);
  const asked = [log.sync(), log.sync()];
  for (const each of asked) each?.then(note, note);
  await told.promise;
  const good = makeLogSync(file, () => {});
  await good.sync();
  expect([asked.includes(null), lost.length, settled]).toEqual([false, 1, []]);
  expect(lost[0]).toContain("EINVAL");
  log.close();
  good.close();
  connection.close();
});

test("a log that cannot be flushed is said to be so once, and nothing is told to be kept from then on", async () => {
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
  // All three were asked in order: the thread has answered the last by the time that another has answered.
  const good = makeLogSync(file, () => {});
  await good.sync();
  expect([times, settled]).toEqual([1, []]);
  log.close();
  good.close();
  connection.close();
});

test("what a daemon before has left in the log is written again before anything is added, and is what it was", () => {
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
  // Where there is none there is nothing to write.
  const fresh = openConnection(left);
  rewriteLog(fresh, left);
  expect(fresh.queries.all("SELECT count(*) AS n FROM t")).toEqual([{ n: 2 }]);
  fresh.close();
});

test("there is no log to flush of a database that is not there", () => {
  expect(() => makeLogSync(join(directory, "none.db"), () => {})).toThrow("ENOENT");
  connection.close();
});
