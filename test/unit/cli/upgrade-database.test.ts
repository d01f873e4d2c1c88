/** The copy of the database by which an upgrade goes back: kept where the database would change, and put back as it was. */
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forgetDatabase, keepDatabase, putDatabaseBack } from "../../../daemon/cli/upgrade-database.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { latestVersion } from "../../../daemon/db/migrate.ts";

let data: string;
let paths: { database: string; before_upgrade: string };
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "roomd-upgrade-"));
  paths = { database: join(data, "roomd.db"), before_upgrade: join(data, "before-upgrade") };
  run("CREATE TABLE t (n INTEGER)", "INSERT INTO t VALUES (1)", `PRAGMA user_version = ${latestVersion() - 1}`);
});
afterEach(() => rmSync(data, { recursive: true }));

function run(...statements: string[]): void {
  const connection = openConnection(paths.database);
  for (const statement of statements) connection.execute(statement);
  connection.close();
}

function rows(): unknown[] {
  const connection = openConnection(paths.database);
  const found = connection.queries.all("SELECT n FROM t ORDER BY n");
  connection.close();
  return found;
}

test("what the new version has changed is as it was before, and the copy is used up", () => {
  keepDatabase(paths);
  run("INSERT INTO t VALUES (2)", `PRAGMA user_version = ${latestVersion()}`);
  putDatabaseBack(paths);
  expect(rows()).toEqual([{ n: 1 }]);
  putDatabaseBack(paths);
  expect(rows()).toEqual([{ n: 1 }]);
  forgetDatabase(paths);
  expect(existsSync(paths.before_upgrade)).toBe(false);
});

test("a copy has no log, and the log of a copy of an earlier version is written into it first", () => {
  const writer = openConnection(paths.database);
  writer.execute("INSERT INTO t VALUES (2)");
  keepDatabase(paths);
  const kept = join(paths.before_upgrade, "roomd.db");
  expect([existsSync(kept), existsSync(`${kept}-wal`)]).toEqual([true, false]);
  // As an earlier version copies it: both files.
  for (const end of ["", "-wal"]) copyFileSync(`${paths.database}${end}`, `${kept}${end}`);
  writer.close();
  run("INSERT INTO t VALUES (3)");
  putDatabaseBack(paths);
  expect([rows(), existsSync(kept)]).toEqual([[{ n: 1 }, { n: 2 }], false]);
});

test("a copy that an interrupted upgrade has left is kept, and a database that would not change has none", () => {
  keepDatabase(paths);
  run("INSERT INTO t VALUES (2)");
  keepDatabase(paths);
  putDatabaseBack(paths);
  expect(rows()).toEqual([{ n: 1 }]);
  forgetDatabase(paths);
  run(`PRAGMA user_version = ${latestVersion()}`);
  keepDatabase(paths);
  expect(existsSync(paths.before_upgrade)).toBe(false);
});
