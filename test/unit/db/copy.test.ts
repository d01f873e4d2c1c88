/** A copy of the database is made while others write to it, who do not wait for it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { changeCopy, copyDatabase, readDatabase } from "../../../daemon/db/copy.ts";

let directory: string;
let file: string;
let writer: Connection;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-copy-"));
  file = join(directory, "roomd.db");
  writer = openConnection(file);
  writer.execute("CREATE TABLE t (n INTEGER)");
  writer.execute("INSERT INTO t VALUES (1)");
});
afterEach(() => {
  writer.close();
  rmSync(directory, { recursive: true });
});
const logBytes = () => statSync(`${file}-wal`).size;

test("the log that others write to is left to them: writing it out would have them wait", () => {
  const copy = join(directory, "copy.db");
  const before = logBytes();
  expect(before).toBeGreaterThan(0);
  copyDatabase(file, copy);
  expect(readDatabase(file, (queries) => queries.all(sql`SELECT n FROM t`))).toEqual([{ n: 1 }]);
  expect(logBytes()).toBe(before);
  expect(readDatabase(copy, (queries) => queries.all(sql`SELECT n FROM t`))).toEqual([{ n: 1 }]);
});

test("a connection beside others ends its statements: with one left, the runtime would write the log out at the process's end", () => {
  const beside = openConnection(file, { alone: false });
  const prepared = beside.queries.select({ n: sql`n` }).from(sql`t`).prepare();
  expect(prepared.all()).toEqual([{ n: 1 }]);
  beside.close();
  expect(() => prepared.all()).toThrow("finalized");
});

test("a copy that SQLite finds damaged is refused", () => {
  writer.execute("CREATE TABLE damaged (n INTEGER          )");
  writer.execute("INSERT INTO damaged VALUES (NULL)");
  writer.close();
  const bytes = readFileSync(file).toString("latin1");
  writeFileSync(file, bytes.replace("n INTEGER          )", "n INTEGER NOT NULL )"), "latin1");
  expect(() => copyDatabase(file, join(directory, "copy.db"))).toThrow("NULL value in damaged.n");
  writer = openConnection(file);
});

test("who has it alone writes the log out at the end", () => {
  writer.close();
  expect(existsSync(`${file}-wal`) ? logBytes() : 0).toBe(0);
  writer = openConnection(file);
});

test("a change that is only in the copy's log is an error: the copy alone takes the database's place", async () => {
  const copy = join(directory, "changed.db");
  const reader = openConnection(copy, { alone: false });
  const change = changeCopy(copy, async ({ commit, queries }) => {
    // A log that somebody still reads cannot be written out, as it cannot on a full disk.
    reader.execute("BEGIN");
    reader.queries.all(sql`SELECT * FROM sqlite_schema`);
    queries.run(sql`PRAGMA busy_timeout = 0`);
    await commit((changed) => changed.run(sql`CREATE TABLE late (n INTEGER)`));
  });
  await expect(change).rejects.toThrow("could not be completed");
  reader.execute("COMMIT");
  reader.close();
  expect(await changeCopy(copy, async ({ queries }) => queries.all(sql`SELECT * FROM late`))).toEqual([]);
});
