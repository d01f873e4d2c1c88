/** Databases with concurrent writers, their log while it is held, and copies before one replaces the database. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { changeCopy, checkCopy, holdLog, INCOMPLETE_COPY } from "../../../daemon/db/copy.ts";

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

test("a held log does not restart, and no commit waits", () => {
  const held = holdLog(file);
  const before = held.bytes();
  expect(before).toBeLessThanOrEqual(logBytes());
  writer.execute("INSERT INTO t VALUES (2)");
  const [busy] = writer.queries.all<{ log: number; checkpointed: number }>(sql`PRAGMA wal_checkpoint(PASSIVE)`);
  expect(busy?.checkpointed).toBeLessThan(busy?.log ?? 0);
  writer.execute("INSERT INTO t VALUES (3)");
  expect(held.bytes()).toBeGreaterThan(before);
  expect(held.bytes()).toBe(logBytes());
  held.release();
  writer.queries.all(sql`PRAGMA wal_checkpoint(PASSIVE)`);
  const full = logBytes();
  writer.execute("INSERT INTO t VALUES (4)");
  expect(logBytes()).toBe(full);
  expect(writer.log().pages).toBe(1);
});

test("an additional connection finalizes its statements on close: open ones would checkpoint the log at exit", () => {
  const extra = openConnection(file, { alone: false });
  const prepared = extra.queries.select({ n: sql`n` }).from(sql`t`).prepare();
  expect(prepared.all()).toEqual([{ n: 1 }]);
  extra.close();
  expect(() => prepared.all()).toThrow("finalized");
});

test("a damaged copy is rejected by SQLite's check", () => {
  writer.execute("CREATE TABLE damaged (n INTEGER          )");
  writer.execute("INSERT INTO damaged VALUES (NULL)");
  writer.close();
  const bytes = readFileSync(file).toString("latin1");
  writeFileSync(file, bytes.replace("n INTEGER          )", "n INTEGER NOT NULL )"), "latin1");
  expect(() => checkCopy(file)).toThrow("damaged.n");
  writer = openConnection(file);
});

test("an exclusive connection checkpoints the log at the end", () => {
  writer.close();
  expect(existsSync(`${file}-wal`) ? logBytes() : 0).toBe(0);
  writer = openConnection(file);
});

test("a change that is only in the copy's log is an error: only the copy's main file replaces the database", async () => {
  const copy = join(directory, "changed.db");
  const reader = openConnection(copy, { alone: false });
  const change = changeCopy(copy, async ({ commit, queries }) => {
    // A log with a reader cannot be written into the file, as it cannot on a full disk.
    reader.execute("BEGIN");
    reader.queries.all(sql`SELECT * FROM sqlite_schema`);
    queries.run(sql`PRAGMA busy_timeout = 0`);
    await commit((changed) => changed.run(sql`CREATE TABLE late (n INTEGER)`));
  });
  await expect(change).rejects.toThrow(INCOMPLETE_COPY);
  reader.execute("COMMIT");
  reader.close();
  expect(await changeCopy(copy, async ({ queries }) => queries.all(sql`SELECT * FROM late`))).toEqual([]);
});
