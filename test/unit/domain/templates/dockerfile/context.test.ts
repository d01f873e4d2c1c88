/** What a COPY takes from a directory: as it is there, and nothing from elsewhere. */
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract } from "tar-stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openContext, takeOf } from "../../../../../daemon/domain/templates/dockerfile/context.ts";

const home = mkdtempSync(join(tmpdir(), "roomd-context-"));
const context = join(home, "context");
afterAll(() => rmSync(home, { recursive: true, force: true }));
beforeAll(() => {
  mkdirSync(join(context, "src", "deep"), { recursive: true });
  for (const [name, text] of [
    ["a.txt", "a"],
    ["b.txt", "bb"],
    ["empty", ""],
    ["src/deep/.hidden", "hidden"],
    ["src/large", "x".repeat(300_000)],
    ["src/secret.key", "key"],
    ["src/kept.key", "kept"],
    [".dockerignore", "# of nobody\n**/*.key\n!src/kept.key\n"],
    ["../outside", "outside"],
  ] as const)
    writeFileSync(join(context, name), text);
  chmodSync(join(context, "a.txt"), 0o750);
  symlinkSync("a.txt", join(context, "src", "link"));
  symlinkSync("..", join(context, "up"));
});

async function taken(sources: string[], look: Parameters<typeof takeOf>[2] = { owner: null, mode: null }) {
  return await read(takeOf(openContext(context), sources, look));
}

async function read({ only, tar }: ReturnType<typeof takeOf>) {
  const reader = extract();
  const entries: Record<string, string> = {};
  reader.on("entry", (header, stream, next) => {
    let bytes = 0;
    stream.on("data", (chunk) => {
      bytes += (chunk as Uint8Array).byteLength;
    });
    stream.on("end", () => {
      const owner = `${header.uid}:${header.gid}${header.uname ? ` ${header.uname}:${header.gname}` : ""}`;
      entries[header.name] = `${header.type} ${(header.mode ?? 0).toString(8)} ${owner} ${header.linkname ?? bytes}`;
      next();
    });
    stream.resume();
  });
  await pipeline(Readable.from(tar), reader as unknown as Writable);
  return { only, entries };
}

test("one file has a name, of which whoever takes it may make another", async () => {
  expect(await taken(["a.txt"])).toEqual({ only: "a.txt", entries: { "a.txt": "file 750 0:0 1" } });
  expect(await taken(["/../a.txt"])).toMatchObject({ only: "a.txt" });
});

test("of a directory its content is taken, links as links, and not what .dockerignore names", async () => {
  const { only, entries } = await taken(["src"], { owner: { user: "app", group: "50" }, mode: 0o644 });
  expect(only).toBeNull();
  expect(entries).toMatchObject({
    deep: "directory 644 0:50 app: 0",
    "deep/.hidden": expect.stringContaining("file 644"),
    "kept.key": expect.stringMatching(/ 4$/),
    large: expect.stringMatching(/ 300000$/),
    link: expect.stringMatching(/^symlink .* a\.txt$/),
  });
  expect(Object.keys(entries)).not.toContain("secret.key");
});

test("patterns name several", async () => {
  const { only, entries } = await taken(["*.txt", "empty"]);
  expect([only, Object.keys(entries)]).toEqual([null, ["a.txt", "b.txt", "empty"]]);
});

test.each([["none"], ["*.none"], ["src/secret.key"], ["up/outside"], ["../outside"]])("%s is refused", (source) => {
  expect(() => takeOf(openContext(context), [source], { owner: null, mode: null })).toThrow(
    /there is no such file|leads out|leaves it out/,
  );
});

test("what is changed once it was looked at leads nowhere else", async () => {
  const own = join(home, "own");
  mkdirSync(join(own, "keys"), { recursive: true });
  writeFileSync(join(own, "keys", "outside"), "mine");
  const take = () => takeOf(openContext(own), ["keys"], { owner: null, mode: null });
  const [parent, whole] = [take(), take()];
  renameSync(join(own, "keys"), join(own, "kept"));
  symlinkSync(home, join(own, "keys"));
  await expect(read(parent)).rejects.toThrow(/EXDEV/);
  renameSync(own, join(home, "other"));
  mkdirSync(join(own, "keys"), { recursive: true });
  await expect(read(whole)).rejects.toThrow(/another directory by now/);
});

test("a .dockerignore that is no file, or a file of a lifetime, is not read", () => {
  const own = join(home, "ignoring");
  mkdirSync(own);
  symlinkSync("/dev/zero", join(own, ".dockerignore"));
  expect(() => openContext(own)).toThrow(/no file, or too large/);
  expect(() => openContext(join(home, "none"))).toThrow(/cannot be read/);
});

test("all COPYs together come by so many files", () => {
  const opened = { ...openContext(context), files: 200_000 - 3 };
  takeOf(opened, ["*.txt"], { owner: null, mode: null });
  expect(() => takeOf(opened, ["src"], { owner: null, mode: null })).toThrow(/more than 200000 files/);
});
