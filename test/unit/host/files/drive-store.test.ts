/**
 * A drive that is copied into a store while it changes, and recreated for guests of another id range: with everything that guests can
 * create there.
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DriveCopier } from "../../../../daemon/host/files/drive-copier.ts";
import { makeNest } from "../../../harness/nest.ts";

const BOUNDS = { bytes: 64 * 1024 ** 2, entries: 100_000 };
const isRoot = process.geteuid?.() === 0;
const [FROM, TO] = isRoot ? [1_000_000, 2_000_000] : [process.getgid?.() ?? 0, process.getgid?.() ?? 0];
let place = "";
let drive = "";
let store = "";

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "drive-store-"));
  drive = roomWithDrive("first", FROM);
  store = join(place, "store");
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function roomWithDrive(name: string, root: number): string {
  const made = join(place, name, "drive");
  mkdirSync(made, { recursive: true });
  if (isRoot) {
    chownSync(join(place, name), 0, root);
    chownSync(made, root, root);
  }
  chmodSync(made, 0o1777);
  return made;
}

async function throughStore(between: () => void = () => {}): Promise<string> {
  await using copier = new DriveCopier();
  await copier.copy(drive, store, BOUNDS);
  between();
  await copier.complete();
  const made = roomWithDrive("second", TO);
  await using other = new DriveCopier();
  await other.restore({ store, drive: made, links: join(dirname(made), "links"), root: TO });
  return made;
}

const own = (path: string, uid: number) => isRoot && chownSync(path, FROM + uid, FROM + uid);

test("files, directories and links are restored unchanged, with the same users in another id range", async () => {
  mkdirSync(join(drive, "a/b"), { recursive: true });
  writeFileSync(join(drive, "a/b/file"), "content");
  own(join(drive, "a/b/file"), 1000);
  chmodSync(join(drive, "a/b/file"), 0o4751);
  utimesSync(join(drive, "a/b/file"), 1.5, 2.25);
  symlinkSync("../../../../etc/passwd", join(drive, "a/out"));
  symlinkSync("b/file", join(drive, "a/in"));
  linkSync(join(drive, "a/b/file"), join(drive, "a/second"));
  writeFileSync(join(drive, `.roomd-${"0".repeat(32)}`), "under way");
  utimesSync(join(drive, "a/b"), 3, 3);
  const made = await throughStore();
  const file = statSync(join(made, "a/b/file"));
  expect(readFileSync(join(made, "a/b/file"), "utf8")).toBe("content");
  expect(file).toMatchObject({
    mode: 0o104751,
    mtimeMs: 2250,
    nlink: 2,
    ...(isRoot && { uid: TO + 1000, gid: TO + 1000 }),
  });
  expect(statSync(join(made, "a/second")).ino).toBe(file.ino);
  expect([readlinkSync(join(made, "a/out")), readlinkSync(join(made, "a/in"))]).toEqual([
    "../../../../etc/passwd",
    "b/file",
  ]);
  expect(statSync(join(made, "a/b")).mtimeMs).toBe(3000);
  expect(readdirSync(made)).toEqual(["a"]);
  expect(statSync(made).mode & 0o7777).toBe(0o1777);
});

test("files that change between the passes have the state of the second", async () => {
  for (const name of ["same", "changed", "gone", "longer", "replaced"]) writeFileSync(join(drive, name), `${name} 1`);
  utimesSync(join(drive, "changed"), 5, 5);
  const made = await throughStore(() => {
    writeFileSync(join(drive, "changed"), "changed 2");
    // The time that a guest can set is not relied on.
    utimesSync(join(drive, "changed"), 5, 5);
    rmSync(join(drive, "gone"));
    writeFileSync(join(drive, "longer"), "x".repeat(100_000));
    rmSync(join(drive, "replaced"));
    mkdirSync(join(drive, "replaced"));
    writeFileSync(join(drive, "replaced/new"), "new");
  });
  const names = readdirSync(made).sort();
  expect(names).toEqual(["changed", "longer", "replaced", "same"]);
  expect(readFileSync(join(made, "changed"), "utf8")).toBe("changed 2");
  expect(readFileSync(join(made, "same"), "utf8")).toBe("same 1");
  expect(statSync(join(made, "longer")).size).toBe(100_000);
  expect(readFileSync(join(made, "replaced/new"), "utf8")).toBe("new");
  const contents = readdirSync(join(store, "contents")).flatMap((shard) => readdirSync(join(store, "contents", shard)));
  expect(contents).toHaveLength(4);
});

test("only files unchanged for a while are not copied again", async () => {
  for (let n = 0; n < 20; n++) writeFileSync(join(drive, `f${n}`), String(n));
  await Bun.sleep(2100);
  writeFileSync(join(drive, "late"), "late");
  await using copier = new DriveCopier();
  expect(await copier.copy(drive, store, BOUNDS)).toMatchObject({ copied: 21, entries: 21 });
  expect(await copier.complete()).toMatchObject({ copied: 1, entries: 21 });
});

test("holes stay holes, and special files are left out", async () => {
  writeFileSync(join(drive, "sparse"), "begin");
  truncateSync(join(drive, "sparse"), 8 * 1024 ** 4);
  execFileSync("mkfifo", [join(drive, "fifo")]);
  if (isRoot) execFileSync("mknod", [join(drive, "device"), "c", "1", "3"]);
  using _socket = Bun.listen({ unix: join(drive, "socket"), socket: { data: () => {} } }) as unknown as Disposable;
  const made = await throughStore();
  expect(readdirSync(made)).toEqual(["sparse"]);
  const copy = statSync(join(made, "sparse"));
  expect([copy.size, copy.blocks * 512 < 1024 ** 2]).toEqual([8 * 1024 ** 4, true]);
});

test("names that are not UTF-8, and a tree of any depth", async () => {
  const odd = Buffer.from([0x66, 0xff, 0x0a, 0x22]);
  writeFileSync(Buffer.concat([Buffer.from(`${drive}/`), odd]), "odd");
  (await makeNest(drive, 300, { files: 1 }))[Symbol.dispose]();
  const made = await throughStore();
  expect(readdirSync(made, { encoding: "buffer" }).some((name) => name.equals(odd))).toBe(true);
  const count = (tree: string) =>
    execFileSync("find", [tree, "-mindepth", "1"], { encoding: "latin1", maxBuffer: 2 ** 30 });
  const shape = (tree: string) => count(tree).replaceAll(tree, "").split("\n").length;
  expect(shape(made)).toBe(shape(drive));
}, 120_000);

test("a file with the maximum number of names keeps all of them", async () => {
  const most = 65_000;
  writeFileSync(join(drive, "n0"), "content");
  let names = 1;
  try {
    for (; names < most; names++) linkSync(join(drive, "n0"), join(drive, `n${names}`));
  } catch (error) {
    // Others allow less.
    expect(error).toMatchObject({ code: "EMLINK" });
  }
  const made = await throughStore();
  expect(readdirSync(made)).toHaveLength(names);
  expect(readFileSync(join(made, `n${names - 1}`), "utf8")).toBe("content");
}, 60_000);

test("a list truncated at the end of a line gives no drive", async () => {
  writeFileSync(join(drive, "one"), "1");
  await throughStore();
  const entries = join(store, "entries.ndjson");
  const lines = readFileSync(entries, "utf8").trim().split("\n");
  writeFileSync(entries, `${lines.slice(0, -1).join("\n")}\n`);
  const made = roomWithDrive("third", TO);
  await using copier = new DriveCopier();
  const restoring = { store, drive: made, links: join(dirname(made), "links"), root: TO };
  await expect(copier.restore(restoring)).rejects.toThrow("incomplete");
});

test("bytes and entries are limited, and a copy can be aborted", async () => {
  for (let n = 0; n < 30; n++) writeFileSync(join(drive, `f${n}`), "x".repeat(100_000));
  await using few = new DriveCopier();
  await expect(few.copy(drive, store, { ...BOUNDS, entries: 10 })).rejects.toMatchObject({ code: "EDQUOT" });
  await using small = new DriveCopier();
  await expect(small.copy(drive, store, { ...BOUNDS, bytes: 500_000 })).rejects.toMatchObject({ code: "EDQUOT" });
  await using ended = new DriveCopier();
  const work = ended.copy(drive, store, BOUNDS);
  ended.giveUp();
  await expect(work).rejects.toThrow("cancelled");
  expect(existsSync(join(drive, "f0"))).toBe(true);
  expect(lstatSync(drive).isDirectory()).toBe(true);
});
