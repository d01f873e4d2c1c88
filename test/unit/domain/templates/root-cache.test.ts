/** Roots that builds keep for later ones: each owner's alone, as many as there is room for, and not for ever. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths, type Paths } from "../../../../daemon/core/config/paths.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import type { ImageFacts } from "../../../../daemon/domain/templates/image/layout.ts";
import { contentsOf, once, stepOf } from "../../../../daemon/domain/templates/recipe-steps.ts";
import { type KeptRoot, rootCache, rootKey, sweepRoots } from "../../../../daemon/domain/templates/root-cache.ts";
import type { OrgId } from "../../../../shared/ids.ts";

const MIB = 1024 ** 2;
const DAY_S = 86_400;
const ORG = "org_1" as OrgId;
const KEPT: KeptRoot = { image: { manifest_digest: "sha256:1" } as ImageFacts, egress_allowlist: [] };

let home: string;
let paths: Paths;
let root: string;
beforeEach(() => {
  home = mkdtempSync("/tmp/roomd-u-");
  paths = makePaths({ data_dir: join(home, "data"), runtime_dir: join(home, "run") });
  root = join(home, "root");
  writeFileSync(root, new Uint8Array(MIB).fill(1));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const open = (owner: OrgId | undefined, mostMib = 100, requireSpace = (_bytes: number) => {}) =>
  rootCache({ paths, most_bytes: mostMib * MIB, requireSpace }, owner);
const at = (owner: string, name: string) => join(paths.kept_roots, owner, name);
const used = (owner: string, key: string, daysAgo: number) => {
  const then = Date.now() / 1000 - daysAgo * DAY_S;
  utimesSync(at(owner, `${key}.json`), then, then);
};

test("an entry is found by its owner alone, and taken as a copy", async () => {
  await open(ORG).keep("a", root, KEPT);
  writeFileSync(root, "changed");
  const into = join(home, "into");
  for (const other of ["org_2" as OrgId, undefined]) {
    expect(await open(other).find("a")).toBeNull();
    expect(await open(other).take("a", into, [])).toBeNull();
  }
  expect(existsSync(into)).toBe(false);
  expect(await open(ORG).take("a", into, [])).toEqual(KEPT);
  expect(readFileSync(into).byteLength).toBe(MIB);
  writeFileSync(into, "changed");
  expect(readFileSync(at(ORG, "a.qcow2")).byteLength).toBe(MIB);
});

test("a root whose steps had wider egress is not reused, and one with narrower egress is", async () => {
  const cache = open(undefined);
  await cache.keep("a", root, { ...KEPT, egress_allowlist: ["one.example:443", "two.example"] });
  const into = join(home, "into");
  for (const list of [[], ["one.example:443"], ["one.example", "two.example"]])
    expect(await cache.take("a", into, list)).toBeNull();
  for (const list of [["two.example", "one.example:443"], ["one.example:443", "two.example", "three.example"], ["*"]])
    expect(await cache.take("a", into, list)).not.toBeNull();
});

test("a partial entry is not found", async () => {
  await open(undefined).keep("a", root, KEPT);
  await open(undefined).keep("b", root, KEPT);
  // As a host that lost power may leave it.
  writeFileSync(at("host", "b.json"), "");
  expect(await open(undefined).find("b")).toBeNull();
  rmSync(at("host", "a.qcow2"));
  expect(await open(undefined).take("a", join(home, "into"), [])).toBeNull();
  expect(existsSync(join(home, "into"))).toBe(false);
});

test("above the limit the least recently used is evicted, and after a week any unused one", async () => {
  const cache = open(undefined);
  for (const key of ["a", "b", "c", "d"]) await cache.keep(key, root, KEPT);
  await open(ORG).keep("e", root, KEPT);
  used("host", "a", 3);
  used("host", "b", 8);
  used("host", "c", 2);
  await sweepRoots(paths, 100 * MIB);
  expect(readdirSync(join(paths.kept_roots, "host")).filter((name) => name.startsWith("b"))).toEqual([]);
  // To be taken is to be used.
  expect(await cache.take("a", join(home, "into"), [])).toEqual(KEPT);
  await sweepRoots(paths, 3 * MIB);
  expect(await Promise.all(["a", "b", "c", "d"].map((key) => cache.find(key)))).toEqual([KEPT, null, null, KEPT]);
  expect(await open(ORG).find("e")).toEqual(KEPT);
  await sweepRoots(paths, 0);
  expect(readdirSync(paths.kept_roots).flatMap((owner) => readdirSync(join(paths.kept_roots, owner)))).toEqual([]);
});

test("above the limit the largest owner loses its own entries, even if it uses them more often", async () => {
  const many = ["a", "b", "c", "d"];
  for (const key of many) await open(undefined).keep(key, root, KEPT);
  for (const key of ["e", "f"]) await open(ORG).keep(key, root, KEPT);
  used("org_1", "e", 3);
  used("org_1", "f", 2);
  await sweepRoots(paths, 4 * MIB);
  expect(await Promise.all(["e", "f"].map((key) => open(ORG).find(key)))).toEqual([KEPT, KEPT]);
  const left = await Promise.all(many.map((key) => open(undefined).find(key)));
  expect(left.filter((kept) => kept !== null)).toHaveLength(2);
  used("org_1", "e", 3);
  await sweepRoots(paths, 3 * MIB);
  await sweepRoots(paths, MIB);
  const rest = readdirSync(paths.kept_roots).flatMap((owner) => readdirSync(join(paths.kept_roots, owner)));
  expect(rest).toHaveLength(2);
});

test("an entry is not stored if it is too large or the disk has no space", async () => {
  await open(ORG, 0.5).keep("a", root, KEPT);
  await open(ORG, 100, () => {
    throw new ServiceError("disk_full");
  }).keep("b", root, KEPT);
  expect(existsSync(paths.kept_roots)).toBe(false);
});

test("leftovers of a killed build are deleted after a while, and unfinished entries stay", async () => {
  mkdirSync(join(paths.kept_roots, "host"), { recursive: true });
  const old = ["old.qcow2.new", "old.qcow2", "facts.json"];
  for (const name of [...old, "new.qcow2"]) writeFileSync(at("host", name), "");
  for (const name of old) utimesSync(at("host", name), 1, 1);
  writeFileSync(join(paths.kept_roots, "stray"), "");
  await sweepRoots(paths, MIB);
  expect(readdirSync(join(paths.kept_roots, "host"))).toEqual(["new.qcow2"]);
});

test("equivalent steps have the same key, and all others their own", async () => {
  const text = (words: string) => once(new TextEncoder().encode(words));
  const [same, too, ...others] = await contentsOf([
    { title: "one", argv: ["true"], env: { A: "1" } },
    { title: "another", argv: ["true"], env: { A: "1" } },
    { title: "one", argv: ["true"], env: { A: "2" } },
    { title: "one", argv: ["true"], env: { A: "1" }, user: "app" },
    { title: "one", put: text("a"), argv: ["true"] },
    { title: "one", put: text("b"), argv: ["true"] },
    { title: "one", put: text("b"), argv: ["false"] },
    stepOf("true"),
  ]);
  expect(too).toBe(same);
  expect(new Set([same, ...others]).size).toBe(7);
  expect(rootKey("a", { content: same })).not.toBe(rootKey("b", { content: same }));
});
