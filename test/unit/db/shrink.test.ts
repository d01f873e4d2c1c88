/** Space of deleted rows returns to the disk. */
import { Database as Sqlite } from "bun:sqlite";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { shrink } from "../../../daemon/db/shrink.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";

const MIB = 1024 ** 2;
let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-shrink-"));
  file = join(directory, "test.db");
});
afterEach(() => rmSync(directory, { recursive: true }));

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

test("a file shrinks to its former size, in pieces with other commits in between", () =>
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

test("pages that a reader keeps in the log are truncated the next time", () =>
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

test("a little free space remains", () =>
  withDatabase(async (database, connection) => {
    await fill(database, 8);
    await database.commit((queries) => queries.run(sql`DELETE FROM t WHERE n > 6`));
    const pages = connection.pragma("page_count");
    await shrink(database);
    expect(connection.pragma("page_count")).toBe(pages);
  }));
