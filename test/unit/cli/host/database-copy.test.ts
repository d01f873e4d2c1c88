/** Copies of a database that another process writes to: their rows, their space, and the remains of a failed copy. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { copyDatabase } from "../../../../daemon/cli/host/database-copy.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { checkCopy, readDatabase } from "../../../../daemon/db/copy.ts";
import { makeWritable, startWriter } from "../../../harness/durability/database-writer.ts";
import { mountSharing, whyNoSharing } from "../../../harness/durability/small-disk.ts";
import { boundOf } from "../../../harness/event-loop/longest-turn.ts";
import { until } from "../../../harness/guests.ts";

const MIB = 1024 ** 2;
const TIB = 1024 ** 4;
const BOUNDS = { "backup.log_mib": 256, "limits.disk_free_mib": 1 };
/** No copy in pieces can keep within it. */
const NO_LOG = { ...BOUNDS, "backup.log_mib": 0 };

let directory: string;
let file: string;
let copy: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-copy-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function databaseIn(at: string, mib: number): void {
  file = join(at, "roomd.db");
  mkdirSync(join(at, "copies"));
  copy = join(at, "copies", "roomd.db");
  makeWritable(file, mib);
}
const logBytes = () => statSync(`${file}-wal`).size;
const numbersIn = (path: string) =>
  readDatabase(path, (queries) => queries.all<{ n: number }>(sql`SELECT n FROM t ORDER BY n`).map(({ n }) => n));

/** The copy has no gap, and all rows that were acknowledged before. */
function expectWhole(acknowledged: number): void {
  expect(readdirSync(join(copy, ".."))).toEqual(["roomd.db"]);
  checkCopy(copy);
  const numbers = numbersIn(copy);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  expect(numbers.length).toBeGreaterThanOrEqual(acknowledged);
}

describe("on a file system that cannot share blocks", { timeout: 60_000 }, () => {
  const why = whyNoSharing(tmpdir()) === null ? `${tmpdir()} can share blocks` : null;
  if (why !== null) console.log(`copies in pieces: left out, because ${why}`);

  test.skipIf(why !== null)("a copy contains all acknowledged commits and delays no writer", async () => {
    databaseIn(directory, 96);
    await using writer = await startWriter(file);
    await until("4000 commits are acknowledged", async () => (await writer.figures()).acknowledged > 4_000);
    let longest = 0;
    const watched = setInterval(() => {
      longest = Math.max(longest, logBytes());
    }, 5);
    const { acknowledged } = await writer.figures();
    await copyDatabase(file, copy, BOUNDS);
    const during = await writer.figures();
    clearInterval(watched);
    expectWhole(acknowledged);
    expect(during.commits).toBeGreaterThan(0);
    expect(during.longest_turn_cpu_ms).toBeLessThan(boundOf(20));
    expect(longest).toBeLessThan(BOUNDS["backup.log_mib"] * MIB);
    // Nothing holds the log any more.
    const size = logBytes();
    const before = statSync(file).mtimeMs;
    await until("the database file is modified", () => statSync(file).mtimeMs > before);
    await until(
      "4000 further commits are acknowledged",
      async () => (await writer.figures()).acknowledged > acknowledged + 4_000,
    );
    expect(logBytes()).toBeLessThan(size + 32 * MIB);
  });

  test.skipIf(why !== null)("a copy is aborted and removed if the log grows above its limit", async () => {
    databaseIn(directory, 8);
    await using writer = await startWriter(file);
    await writer.figures();
    await expect(copyDatabase(file, copy, NO_LOG)).rejects.toThrow(/ backup\.log_mib /);
    expect(readdirSync(join(copy, ".."))).toEqual([]);
    const { acknowledged } = await writer.figures();
    await copyDatabase(file, copy, BOUNDS);
    expectWhole(acknowledged);
  });

  test.skipIf(why !== null)("a copy does not start without free space", async () => {
    databaseIn(directory, 1);
    // Larger than the disk.
    truncateSync(file, 15 * TIB);
    await expect(copyDatabase(file, copy, BOUNDS)).rejects.toThrow(/ TiB /);
    expect(readdirSync(join(copy, ".."))).toEqual([]);
  });
});

describe("on XFS", { timeout: 60_000 }, () => {
  const disk = () => join(directory, "disk");
  const why = whyNoSharing();
  if (why !== null) console.log(`copies that share blocks: left out, because ${why}`);
  afterEach(() => void spawnSync("umount", [disk()]));

  test.skipIf(why !== null)("a copy shares blocks, so it needs no space and no log", async () => {
    mountSharing(disk(), 512);
    databaseIn(disk(), 300);
    await using writer = await startWriter(file);
    await until("400 commits are acknowledged", async () => (await writer.figures()).acknowledged > 400);
    const { acknowledged } = await writer.figures();
    // Half of the disk is taken.
    await copyDatabase(file, copy, NO_LOG);
    const during = await writer.figures();
    expectWhole(acknowledged);
    expect(during.longest_turn_cpu_ms).toBeLessThan(boundOf(20));
  });
});

test("a commit only in the log is in the copy, and the log is unchanged", async () => {
  databaseIn(directory, 1);
  const connection = openConnection(file);
  connection.execute("INSERT INTO t VALUES (1, x'00', 'one')");
  const before = logBytes();
  await copyDatabase(file, copy, BOUNDS);
  expect([numbersIn(copy), logBytes()]).toEqual([[1], before]);
  connection.close();
  const second = `${copy}.second`;
  await copyDatabase(file, second, BOUNDS);
  expect(numbersIn(second)).toEqual([1]);
});
