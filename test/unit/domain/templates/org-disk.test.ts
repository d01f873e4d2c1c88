/**
 * Disk usage of an organization's templates: their own files on the disk, of the current version and the previous one; and its limit by the
 * plan.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths, type Paths } from "../../../../daemon/core/config/paths.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { largestInWork, requireFits, requireLeft, templateMib } from "../../../../daemon/domain/templates/org-disk.ts";
import { CURRENT } from "../../../../daemon/domain/templates/registry.ts";
import type { OrgId } from "../../../../shared/ids.ts";

const MIB = 1024 ** 2;
const ORG = "org_1" as OrgId;
const CAPS = { soft_cap: 1, hard_cap: 4 };

let home: string;
let paths: Paths;
beforeEach(() => {
  home = mkdtempSync("/tmp/roomd-u-");
  paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const version = (name: string) => name.padEnd(26, "0");

function make(templateId: string, name: string, mib: number, owner: OrgId | null = ORG): string {
  const directory = join(paths.template(templateId, owner), version(name));
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "memory"), new Uint8Array(mib * MIB).fill(1));
  return directory;
}

function use(templateId: string, name: string): void {
  const link = join(paths.template(templateId, ORG), CURRENT);
  rmSync(link, { force: true });
  symlinkSync(version(name), link);
}

test("current versions count with their previous one, and no files of others", async () => {
  expect(await templateMib(paths, ORG)).toBe(0);
  make("one", "01a", 4);
  make("one", "01b", 2);
  make("one", "01c", 1);
  make("one", "01d", 8);
  use("one", "01c");
  make("never", "01a", 8);
  make("one", "01a", 8, "org_2" as OrgId);
  make("one", "01a", 8, null);
  expect(await templateMib(paths, ORG)).toBe(3);
  make("two", "01a", 1);
  use("two", "01a");
  expect(await templateMib(paths, ORG)).toBe(4);
});

test("after an update the version before the previous one does not count any more", async () => {
  for (const [name, mib] of [
    ["01a", 4],
    ["01b", 2],
    ["01c", 1],
  ] as const)
    make("one", name, mib);
  use("one", "01b");
  make("two", "01a", 1);
  use("two", "01a");
  expect(await templateMib(paths, ORG)).toBe(7);
  expect(await templateMib(paths, ORG, { templateId: "one", version: version("01c") })).toBe(4);
  make("new", "01a", 3);
  expect(await templateMib(paths, ORG, { templateId: "new", version: version("01a") })).toBe(10);
});

test("of a running build the largest file counts, including that of its build guest", async () => {
  expect(await largestInWork(paths, ORG, "one")).toBe(0);
  make("one", "01b", 8);
  use("one", "01b");
  make("one", "01a", 8);
  expect(await largestInWork(paths, ORG, "one")).toBe(0);
  writeFileSync(join(make("one", "01c", 2), "root.qcow2"), new Uint8Array(MIB).fill(1));
  expect(await largestInWork(paths, ORG, "one")).toBe(2);
  const { directory, overlay } = paths.trial("sbx_1");
  mkdirSync(directory, { recursive: true });
  writeFileSync(overlay, new Uint8Array(3 * MIB).fill(1));
  expect(await largestInWork(paths, ORG, "one")).toBe(3);
});

test("holes and links take no space", async () => {
  const directory = make("one", "01a", 1);
  writeFileSync(join(directory, "root.qcow2"), "");
  truncateSync(join(directory, "root.qcow2"), 64 * MIB);
  symlinkSync("nowhere", join(directory, "gone"));
  use("one", "01a");
  writeFileSync(join(paths.templates_of(ORG), "a-file"), "x");
  expect(await templateMib(paths, ORG)).toBe(1);
});

test("a build may start if any space remains, and is published if it fits", () => {
  const refusal = (refuse: () => void) => {
    try {
      refuse();
      return null;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return [error.code, error.options.details];
    }
  };
  const refused = (used: number, cap: number) => ["quota_exceeded", { limit: "template_mib", used, cap }];
  expect(refusal(() => requireLeft(3, CAPS))).toBeNull();
  expect(refusal(() => requireLeft(4, CAPS))).toEqual(refused(4, 4));
  expect(refusal(() => requireFits(4, CAPS))).toBeNull();
  expect(refusal(() => requireFits(5, CAPS))).toEqual(refused(5, 4));
  expect(refusal(() => requireLeft(0, { soft_cap: 0, hard_cap: 0 }))).toEqual(refused(0, 0));
});
