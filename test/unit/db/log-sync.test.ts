/** Flushing the log of a real database by a thread: in order, and with its error. */
import { mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { makeLogSync } from "../../../daemon/db/log-sync.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";

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

test("a log that cannot be flushed is said to be so, and none of what comes later is flushed", async () => {
  const other = join(directory, "other.db");
  symlinkSync("/dev/null", `${other}-wal`);
  const lost: string[] = [];
  const log = makeLogSync(other, ({ message }) => lost.push(message));
  const both = await Promise.allSettled([log.sync(), log.sync()]);
  for (const each of both) expect(String((each as PromiseRejectedResult).reason)).toContain("EINVAL");
  await expect(log.sync()).rejects.toThrow("EINVAL");
  expect(lost.length).toBe(1);
  log.close();
  connection.close();
});

test("there is no log to flush of a database that is not there", () => {
  expect(() => makeLogSync(join(directory, "none.db"), () => {})).toThrow("ENOENT");
  connection.close();
});
