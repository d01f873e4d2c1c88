/**
 * Backups and closed days of the audit: an archive contains the days that its database names, even if they are purged during the backup; an
 * archive for a store contains no days.
 */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { backUp, copyService, oneAtATime } from "../../../daemon/cli/host/backup-archive.ts";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { verifyAll } from "../../../daemon/domain/audit/chain/verify-all.ts";
import { Days } from "../domain/audit/days/days-fixture.ts";

const BOUNDS = { "backup.log_mib": 1024, "limits.disk_free_mib": 1 };
const NAMES = ["2026-01-01.db", "2026-01-02.db", "2026-01-03.db"];

async function archived(days: Days, meanwhile: () => void, withDays: boolean) {
  const paths = makePaths({ data_dir: days.home, runtime_dir: join(days.home, "run") });
  const out = join(days.home, "out");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out);
  const to = openSync(join(out, "backup.tar"), "w");
  const made = await oneAtATime(paths, async () => {
    const copied = await copyService(paths, BOUNDS);
    meanwhile();
    return await backUp(paths, to, copied, { withDays });
  });
  closeSync(to);
  const unpacked = join(out, "unpacked");
  mkdirSync(unpacked);
  const argv = ["--extract", "--ignore-zeros", "--exclude=./out", "-C", unpacked, "-f", join(out, "backup.tar")];
  expect(spawnSync("tar", argv).status).toBe(0);
  return { made, unpacked };
}

test("an archive contains the days named in its database, including days purged during the backup", async () => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day, 30);
  await days.close();
  const { made, unpacked } = await archived(days, () => rmSync(join(days.directory, "2026-01-01.db")), true);
  expect(made.days_missing).toEqual([]);
  expect(readdirSync(join(unpacked, "audit")).sort()).toEqual(NAMES);
  const connection = openConnection(join(unpacked, "roomd.db"));
  const verified = await verifyAll(connection.queries, []);
  connection.close();
  expect(verified.verdicts.map(({ ok, to_seq }) => [ok, to_seq > 0])).toEqual(Array(3).fill([true, true]));
  // A day that was lost before is reported.
  const again = await archived(days, () => {}, true);
  expect(again.made.days_missing).toEqual(["2026-01-01.db"]);
  expect(readdirSync(join(again.unpacked, "audit")).sort()).toEqual(NAMES.slice(1));
});

test("an archive for a store, which has the days already, contains no days", async () => {
  await using days = new Days();
  for (const day of [0, 1, 2]) await days.add(day, 30);
  await days.close();
  const { unpacked } = await archived(days, () => {}, false);
  expect(readdirSync(unpacked)).toContain("roomd.db");
  expect(readdirSync(unpacked)).not.toContain("audit");
});
