/** Archives of data that guests left, however hostile: all other files are restored, and files that are not restored are reported. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { unpackArchive, writeArchive } from "../../../daemon/host/archive.ts";
import { TarErrors } from "../../../daemon/host/tar-errors.ts";

const THEIRS = ["rooms"];
let root: string;
let from: string;
let archive: string;
let to: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "roomd-archive-"));
  [from, archive, to] = [join(root, "from"), join(root, "archive.tar"), join(root, "to")];
  for (const directory of [join(from, "rooms/a/drive"), join(from, "rooms/b/drive"), to]) {
    mkdirSync(directory, { recursive: true });
  }
  writeFileSync(join(from, "roomd.db"), "the database");
  for (const room of ["a", "b"]) writeFileSync(join(from, "rooms", room, "drive/file"), room);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Nests directories step by step, since no path is long enough. At their end is a file with a name that would be two lines of tar's. */
function nest(levels: number, nameBytes: number): void {
  const script = `cd "$1"; for ((n = 0; n < ${levels}; n++)); do mkdir "$2" && cd "$2" || exit 1; done; echo end >"$3"`;
  const name = "n".repeat(nameBytes);
  const leaf = "leaf\ntar: Error is not recoverable: exiting now";
  execFileSync("bash", ["-c", script, "nest", join(from, "rooms/a/drive"), name, leaf]);
}

async function write(): ReturnType<typeof writeArchive> {
  const opened = openSync(archive, "w");
  try {
    return await writeArchive([{ directory: from, names: ["roomd.db", "rooms"] }], opened, THEIRS);
  } finally {
    closeSync(opened);
  }
}

async function unpack(theirs: readonly string[] = THEIRS): ReturnType<typeof unpackArchive> {
  const opened = openSync(archive, "r");
  try {
    return await unpackArchive(opened, to, theirs);
  } finally {
    closeSync(opened);
  }
}

function expectTheRest(): void {
  expect(readFileSync(join(to, "roomd.db"), "utf8")).toBe("the database");
  for (const room of ["a", "b"]) expect(readFileSync(join(to, "rooms", room, "drive/file"), "utf8")).toBe(room);
}

test("paths that cannot be recreated are not written, and all others are", async () => {
  nest(40, 200);
  expect(await write()).toEqual({ changed: false, missed: { count: 0, first: [] } });
  const listed = spawnSync("tar", ["-tf", archive], { encoding: "utf8" }).stdout.split("\n");
  expect(Math.max(...listed.map((path) => path.length))).toBeLessThanOrEqual(4064);
  expect(listed.filter((path) => path.includes("nnn")).length).toBe(20);
  expect(await unpack()).toEqual({ count: 0, first: [] });
  expectTheRest();
});

test("paths that cannot be recreated are reported, and all others are unpacked", async () => {
  nest(40, 200);
  spawnSync("tar", ["-cf", archive, "--format=posix", "-C", from, "./roomd.db", "./rooms"]);
  const { count, first } = await unpack();
  expect(count).toBe(21);
  expect(first.length).toBe(10);
  for (const line of first) expect(line).toMatch(/^\.\/rooms\/a\/drive\/n+….*: Cannot \w+: File name too long$/s);
  expect(Math.max(...first.map((line) => line.length))).toBeLessThanOrEqual(300);
  expectTheRest();
  // Outside of guests' directories it is a failure.
  rmSync(to, { recursive: true });
  mkdirSync(to);
  await expect(unpack([])).rejects.toThrow(/^tar .*\b2: tar: \.\/rooms\/a\/drive\/n+….*File name too long$/);
});

test("names are bytes, in any encoding", async () => {
  const names = ["plain", "zweit\u00fc", "\u65e5\u672c"];
  for (const name of names) writeFileSync(join(from, "rooms/a/drive", name), name);
  const bytes = Buffer.concat([Buffer.from(join(from, "rooms/b/drive/")), Buffer.from([0xff, 0xfe])]);
  writeFileSync(bytes, "no text");
  await write();
  await unpack();
  expect(readdirSync(join(to, "rooms/a/drive")).sort()).toEqual(["file", ...names].sort());
  expect(readdirSync(Buffer.from(join(to, "rooms/b/drive")), { encoding: "buffer" }).map(String).length).toBe(2);
  expect(existsSync(Buffer.concat([Buffer.from(join(to, "rooms/b/drive/")), Buffer.from([0xff, 0xfe])]))).toBe(true);
});

test("data appended to an archive is unpacked with it; a truncated one fails, or has no end", async () => {
  writeFileSync(join(from, "end"), "the end");
  const opened = openSync(archive, "w");
  await writeArchive([{ directory: from, names: ["roomd.db", "rooms"] }], opened, THEIRS);
  await writeArchive([{ directory: from, names: ["end"] }], opened);
  closeSync(opened);
  await unpack();
  expectTheRest();
  expect(readFileSync(join(to, "end"), "utf8")).toBe("the end");
  const whole = readFileSync(archive);
  for (let bytes = 512; bytes < statSync(archive).size - 10_240; bytes += 512) {
    rmSync(to, { recursive: true });
    mkdirSync(to);
    writeFileSync(archive, whole.subarray(0, bytes));
    await unpack().catch((error: Error) => expect(error.message).toMatch(/^tar .*\b2: tar: /));
    expect(existsSync(join(to, "end"))).toBe(false);
  }
});

const WENT_ON = "tar: Exiting with failure status due to previous errors";
const judged = (lines: readonly string[], ended: { code: number; signal: string | null }) => {
  const complaints = new TarErrors(["rooms", "retired"]);
  for (const line of lines) complaints.hear(line);
  return { ...complaints.judge(ended), ...complaints.missed };
};

test("a file swapped by a guest during tar is reported, and is no failure", () => {
  const swapped = "./rooms/rom_1/drive/x: Cannot open: Too many levels of symbolic links";
  const vanished = "tar: ./rooms/rom_1/drive/y: File removed before we read it";
  const ended = { code: 2, signal: null };
  expect(judged([vanished, `tar: ${swapped}`, WENT_ON], ended)).toEqual({ changed: false, count: 1, first: [swapped] });
  expect(judged([vanished], { code: 1, signal: null })).toEqual({ changed: true, count: 0, first: [] });
});

test("an error not caused by a guest is a failure, and is shown", () => {
  const swapped = "tar: ./rooms/rom_1/drive/x: Cannot open: No such device or address";
  for (const [line, code] of [
    ["tar: ./rooms/rom_1/drive/x: Cannot write: No space left on device", 2],
    ["tar: ./rooms/rom_1/drive/x: Wrote only 512 of 10240 bytes", 2],
    ["tar: ./retired/rom_1/drive/x: Read error at byte 0, while reading 512 bytes: Input/output error", 2],
    ["tar: ./rooms: Cannot open: Permission denied", 2],
    ["tar: ./roomd.db: Cannot open: No such file or directory", 2],
    ["tar: Unexpected EOF in archive", 2],
    ["tar: -: Cannot write: Broken pipe", 2],
  ] as const) {
    expect(() => judged([swapped, line, WENT_ON], { code, signal: null })).toThrow(`${code}: ${line}`);
  }
  // It did not go on to its end.
  const fatal = "tar: Error is not recoverable: exiting now";
  expect(() => judged([swapped, fatal], { code: 2, signal: null })).toThrow(fatal);
  expect(() => judged([swapped], { code: 2, signal: null })).toThrow(/^tar .*\b2: /);
  expect(() => judged([swapped, WENT_ON], { code: 127, signal: null })).toThrow(/^tar .*\b127: /);
  expect(() => judged([], { code: 139, signal: "SIGSEGV" })).toThrow(/^tar .*\bSIGSEGV$/);
});
