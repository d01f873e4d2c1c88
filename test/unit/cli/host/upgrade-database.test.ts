/** The copy of the database with which an upgrade rolls back: made if the upgrade would change the database, and restored unchanged. */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { forgetDatabase, keepDatabase, putDatabaseBack } from "../../../../daemon/cli/host/upgrade-database.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { latestVersion } from "../../../../daemon/db/migrate.ts";
import { RecordedDisk, recorder, snapshotOf } from "../../../harness/durability/recorded-disk.ts";
import { whyNoSharing } from "../../../harness/durability/small-disk.ts";
import { Chance } from "../../../harness/random.ts";

const BOUNDS = { "backup.log_mib": 1024, "limits.disk_free_mib": 1 };

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

function rows(database = paths.database): unknown[] {
  const connection = openConnection(database);
  const found = connection.queries.all("SELECT n FROM t ORDER BY n");
  connection.close();
  return found;
}

test("rolls back the new version's changes and consumes the copy", async () => {
  await keepDatabase(paths, BOUNDS);
  run("INSERT INTO t VALUES (2)", `PRAGMA user_version = ${latestVersion()}`);
  putDatabaseBack(paths);
  expect(rows()).toEqual([{ n: 1 }]);
  putDatabaseBack(paths);
  expect(rows()).toEqual([{ n: 1 }]);
  forgetDatabase(paths);
  expect(existsSync(paths.before_upgrade)).toBe(false);
});

test("a copy contains commits that are only in the log, and has no log itself", async () => {
  const writer = openConnection(paths.database);
  writer.execute("INSERT INTO t VALUES (2)");
  await keepDatabase(paths, BOUNDS);
  expect(readdirSync(paths.before_upgrade)).toEqual(["roomd.db"]);
  writer.close();
  run("INSERT INTO t VALUES (3)");
  putDatabaseBack(paths);
  expect([rows(), readdirSync(paths.before_upgrade)]).toEqual([[{ n: 1 }, { n: 2 }], []]);
});

test("without space no copy is made, and no part of it remains", async () => {
  // A file system that shares blocks has space for a copy of any size.
  if (whyNoSharing(data) === null) return console.log("left out, because a copy takes no space here");
  truncateSync(paths.database, 15 * 1024 ** 4);
  await expect(keepDatabase(paths, BOUNDS)).rejects.toThrow(/ TiB /);
  expect(readdirSync(data).filter((name) => name.startsWith("before-upgrade"))).toEqual([]);
});

test("keeps the copy of an interrupted upgrade, and makes none if nothing would change", async () => {
  await keepDatabase(paths, BOUNDS);
  run("INSERT INTO t VALUES (2)");
  await keepDatabase(paths, BOUNDS);
  putDatabaseBack(paths);
  expect(rows()).toEqual([{ n: 1 }]);
  forgetDatabase(paths);
  run(`PRAGMA user_version = ${latestVersion()}`);
  await keepDatabase(paths, BOUNDS);
  expect(existsSync(paths.before_upgrade)).toBe(false);
});

test("a loss of power during a restore leaves either database whole, and the next attempt completes it", async () => {
  const former = [{ n: 1 }, { n: 2 }];
  const present = [{ n: 1 }, { n: 3 }];
  const aside = join(data, "aside.db");
  const writer = openConnection(paths.database);
  writer.execute("INSERT INTO t VALUES (2)");
  await keepDatabase(paths, BOUNDS);
  // The new version has ended while it wrote its log into the file.
  writer.execute("UPDATE t SET n = 3 WHERE n = 2");
  for (const end of ["", "-wal"]) copyFileSync(`${paths.database}${end}`, `${aside}${end}`);
  writer.close();
  for (const end of ["", "-wal"]) renameSync(`${aside}${end}`, `${paths.database}${end}`);
  const opened = openSync(paths.database, "r+");
  const lost = Buffer.alloc(statSync(paths.database).size - 4096);
  writeSync(opened, lost, 0, lost.length, 4096);
  closeSync(opened);

  const home = mkdtempSync(join(tmpdir(), "roomd-upgrade-"));
  try {
    const before = snapshotOf(data, join(home, "before"));
    const recording = join(home, "recording");
    const source = resolve("daemon/cli/host/upgrade-database.ts");
    const script = `(await import(${JSON.stringify(source)})).putDatabaseBack(${JSON.stringify(paths)})`;
    const [program = "", ...words] = recorder({ to: recording }).split(" ");
    execFileSync(program, [...words, process.execPath, "-e", script]);
    const disk = new RecordedDisk(data, before);
    disk.read(recording);
    expect(disk.syncs.length).toBeGreaterThan(3);
    const chance = new Chance();
    for (let after = 0; after < disk.length; after++) {
      for (let state = 0; state < 4; state++) {
        const left = join(home, "left");
        const inspected = join(home, "looked");
        disk.crash(after, chance, left);
        snapshotOf(left, inspected);
        const at = `after change ${after}, ROOMD_TEST_SEED=${chance.seed}`;
        expect([former, present], at).toContainEqual(rows(join(inspected, "roomd.db")));
        putDatabaseBack({ database: join(left, "roomd.db"), before_upgrade: join(left, "before-upgrade") });
        expect(rows(join(left, "roomd.db")), at).toEqual(former);
        for (const each of [left, inspected]) rmSync(each, { recursive: true });
      }
    }
    expect(rows()).toEqual(former);
  } finally {
    rmSync(home, { recursive: true });
  }
});
