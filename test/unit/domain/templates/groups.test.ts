/** The numbers of the groups that read organizations' templates, and the files that the groups are given. */
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../../daemon/db/transact.ts";
import { makeTemplateGroups, regroupOrgTemplates } from "../../../../daemon/domain/templates/groups.ts";
import type { OrgId } from "../../../../shared/ids.ts";

const org = (name: string) => `org_${name}` as OrgId;

test("each organization has a unique and permanent number, even if two are requested concurrently", async () => {
  const connection = openConnection(":memory:");
  migrate(connection);
  const database = makeDatabase(connection);
  const [one, another] = [makeTemplateGroups(database), makeTemplateGroups(database)];
  expect(one.numberOf(org("a"))).toBeNull();
  const taken = await Promise.all([one.take(org("a")), another.take(org("a")), another.take(org("b"))]);
  expect(taken).toEqual([0, 0, 1]);
  expect(await one.take(org("c"))).toBe(2);
  expect([org("a"), org("b"), org("c"), org("d")].map(another.numberOf)).toEqual([0, 1, 2, null]);
  await database.close();
});

const isRoot = process.geteuid?.() === 0;
if (!isRoot) console.warn("only root gives files to groups: that test is left out");

test.skipIf(!isRoot)("all versions of a template are given to its owner's group, including former ones", async () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-groups-"));
  try {
    const paths = makePaths({ data_dir: home, runtime_dir: home });
    const ofAll = 1_967_128_001;
    const files: string[] = [];
    for (const owner of ["a", "b"]) {
      for (const version of ["0".repeat(26), "1".repeat(26), "not-a-version"]) {
        const directory = join(paths.template("t", org(owner)), version);
        mkdirSync(directory, { recursive: true });
        const file = join(directory, "root.qcow2");
        writeFileSync(file, "");
        chownSync(file, 0, ofAll);
        chmodSync(file, 0o640);
        files.push(file);
      }
    }
    await regroupOrgTemplates(paths, async (owner) => (owner === org("a") ? 7001 : 7002));
    expect(files.map((file) => statSync(file).gid)).toEqual([7001, 7001, ofAll, 7002, 7002, ofAll]);
    expect(statSync(files[0] ?? "").mode & 0o777).toBe(0o640);
  } finally {
    rmSync(home, { recursive: true });
  }
});
