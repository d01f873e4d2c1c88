/** What was deleted is given back to the disk: by a new database, by one of an older roomd, and by its copies. */
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeLog } from "../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { copyDatabase } from "../../../daemon/db/copy.ts";
import { rewriteOnce, shrink } from "../../../daemon/db/shrink.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";

const MIB = 1024 ** 2;
let directory: string;
let file: string;
let said: string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-shrink-"));
  file = join(directory, "test.db");
  said = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

const log = makeLog("debug", (line) => void said.push((JSON.parse(line) as { message: string }).message));
const sizeMib = (path = file) => statSync(path).size / MIB;

async function withDatabase(work: (database: Database, connection: Connection) => Promise<void>): Promise<void> {
  const connection = openConnection(file);
  const database = makeDatabase(connection);
  try {
    await work(database, connection);
  } finally {
    await database.close();
  }
}

async function fill(database: Database, mib: number): Promise<void> {
  await database.commit((queries) => {
    queries.run(sql`CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, bytes BLOB) STRICT`);
    for (let row = 0; row < mib; row++) queries.run(sql`INSERT INTO t (bytes) VALUES (randomblob(${MIB}))`);
  });
}

test("a file is as small again as it was, in pieces with others' commits in between", () =>
  withDatabase(async (database, connection) => {
    await fill(database, 2);
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)");
    const before = sizeMib();
    await fill(database, 48);
    await database.commit((queries) => queries.run(sql`DELETE FROM t WHERE n > 2`));
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)");
    expect(sizeMib()).toBeGreaterThan(before + 45);

    let isOver = false;
    const shrinking = shrink(database).finally(() => {
      isOver = true;
    });
    const pages = [Number(connection.pragma("page_count"))];
    while (!isOver) {
      await database.commit(() => {});
      pages.push(Number(connection.pragma("page_count")));
    }
    await shrinking;
    const pieces = pages.slice(1).map((page, at) => (pages[at] ?? 0) - page);
    // With the last page that it describes, a page of the pointer map goes too.
    expect(Math.max(...pieces)).toBeLessThanOrEqual(2 * (64 + 1));
    expect(sizeMib()).toBeLessThan(before + 3);
    expect(sizeMib(`${file}-wal`)).toBeLessThan(40);
    expect(connection.pragma("integrity_check")).toBe("ok");
    expect(database.queries.all(sql`SELECT n FROM t`)).toEqual([{ n: 1 }, { n: 2 }]);
  }));

test("what a reader keeps in the log is cut off the next time", () =>
  withDatabase(async (database, connection) => {
    await fill(database, 24);
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)");
    const reader = new Sqlite(file, { readonly: true });
    try {
      reader.run("BEGIN");
      reader.query("SELECT count(*) FROM t").get();
      await database.commit((queries) => queries.run(sql`DELETE FROM t WHERE n > 2`));
      await shrink(database);
      expect(sizeMib()).toBeGreaterThan(20);
    } finally {
      reader.close();
    }
    await shrink(database);
    expect(sizeMib()).toBeLessThan(6);
  }));

test("a little free space stays as it is", () =>
  withDatabase(async (database, connection) => {
    await fill(database, 8);
    await database.commit((queries) => queries.run(sql`DELETE FROM t WHERE n > 6`));
    const pages = connection.pragma("page_count");
    await shrink(database);
    expect(connection.pragma("page_count")).toBe(pages);
  }));

describe("a database of an older roomd", () => {
  beforeEach(() => {
    const old = new Sqlite(file, { create: true });
    old.run("PRAGMA journal_mode = WAL");
    old.run("CREATE TABLE t (n INTEGER PRIMARY KEY, bytes BLOB) STRICT");
    for (let row = 0; row < 20; row++) old.run("INSERT INTO t (bytes) VALUES (randomblob(1048576))");
    old.run("DELETE FROM t WHERE n > 2");
    old.close();
  });

  test("is rewritten once, which is said, and shrinks from then on", async () => {
    await withDatabase(async (database, connection) => {
      expect(connection.pragma("auto_vacuum")).toBe(0);
      rewriteOnce(connection, file, log);
      expect(connection.pragma("auto_vacuum")).toBe(2);
      expect(sizeMib()).toBeLessThan(3);
      expect(said).toHaveLength(2);
      expect(database.queries.all(sql`SELECT n FROM t`)).toEqual([{ n: 1 }, { n: 2 }]);
      rewriteOnce(connection, file, log);
      expect(said).toHaveLength(2);
      await fill(database, 20);
      await database.commit((queries) => queries.run(sql`DELETE FROM t WHERE n > 2`));
      await shrink(database);
      expect(sizeMib()).toBeLessThan(6);
    });
  });

  test("that another process reads is left as it is, and works on", async () => {
    const reader = new Sqlite(file);
    await withDatabase(async (database, connection) => {
      connection.execute("PRAGMA busy_timeout = 50");
      reader.run("BEGIN IMMEDIATE");
      rewriteOnce(connection, file, log);
      expect(said.at(-1)).toBe("the database was not rewritten");
      reader.run("COMMIT");
      reader.close();
      await shrink(database);
      await fill(database, 1);
      expect(connection.pragma("auto_vacuum")).toBe(0);
      expect(connection.pragma("integrity_check")).toBe("ok");
    });
  });

  test("has copies that can shrink", () => {
    const copy = join(directory, "copy.db");
    copyDatabase(file, copy);
    const connection = openConnection(copy);
    expect(connection.pragma("auto_vacuum")).toBe(2);
    connection.close();
    expect(sizeMib(copy)).toBeLessThan(3);
  });
});
