/** Files that a COPY takes from a directory: unchanged, and none from elsewhere. */
import { createHash } from "node:crypto";
import {
  chmodSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { gzipSync } from "node:zlib";
import { extract, type Pack, pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { archiveBeside } from "../../../../../daemon/domain/templates/dockerfile/archive.ts";
import {
  Context,
  type ContextSelection,
  IGNORE,
  type Look,
} from "../../../../../daemon/domain/templates/dockerfile/context.ts";
import { directoryBeside } from "../../../../../daemon/domain/templates/dockerfile/directory.ts";

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

const PLAIN: Look = { owner: null, mode: null };
const openContext = (directory: string, files = 0) => new Context(directoryBeside(directory), files);

async function taken(sources: string[], look = PLAIN) {
  return await read(openContext(context).take(sources, look));
}

async function read({ only, tar }: ContextSelection) {
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
  await pipeline(Readable.from(tar(createHash("sha256"))), reader as unknown as Writable);
  return { only, entries };
}

async function hashOf({ tar }: ContextSelection): Promise<string> {
  const hash = createHash("sha256");
  for await (const _ of tar(hash));
  return hash.digest("hex");
}

test("one file has a name, which the caller may replace", async () => {
  expect(await taken(["a.txt"])).toEqual({ only: "a.txt", entries: { "a.txt": "file 750 0:0 1" } });
  expect(await taken(["/../a.txt"])).toMatchObject({ only: "a.txt" });
});

test("a directory gives its content, links as links, without the files in .dockerignore", async () => {
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

test("patterns match several", async () => {
  const { only, entries } = await taken(["*.txt", "empty"]);
  expect([only, Object.keys(entries)]).toEqual([null, ["a.txt", "b.txt", "empty"]]);
});

test.each([["none"], ["*.none"], ["src/secret.key"], ["up/outside"], ["../outside"]])("%s is refused", (source) => {
  expect(() => openContext(context).take([source], PLAIN)).toThrow(`COPY ${source}: `);
});

test("the same content has the same digest at any time, and any other content another", async () => {
  const own = join(home, "same");
  mkdirSync(join(own, "app"), { recursive: true });
  writeFileSync(join(own, "app", "file"), "text");
  const hash = async (look = PLAIN) => await hashOf(openContext(own).take(["app"], look));
  const first = await hash();
  const others = async () => {
    const all = [
      await hash({ owner: { user: "app", group: "app" }, mode: null }),
      await hash({ ...PLAIN, mode: 0o600 }),
    ];
    writeFileSync(join(own, "app", "file"), "test");
    all.push(await hash());
    renameSync(join(own, "app", "file"), join(own, "app", "life"));
    all.push(await hash());
    rmSync(join(own, "app", "life"));
    symlinkSync("text", join(own, "app", "file"));
    all.push(await hash());
    rmSync(join(own, "app", "file"));
    return [...all, await hash()];
  };
  expect(new Set([first, ...(await others())]).size).toBe(7);
  writeFileSync(join(own, "app", "file"), "text");
  lutimesSync(join(own, "app", "file"), 1, 1);
  expect(await hash()).toBe(first);
});

test("a file changed after it was checked leads nowhere else", async () => {
  const own = join(home, "own");
  mkdirSync(join(own, "keys"), { recursive: true });
  writeFileSync(join(own, "keys", "outside"), "mine");
  const take = () => openContext(own).take(["keys"], PLAIN);
  const [parent, whole] = [take(), take()];
  renameSync(join(own, "keys"), join(own, "kept"));
  symlinkSync(home, join(own, "keys"));
  await expect(read(parent)).rejects.toThrow(/EXDEV/);
  renameSync(own, join(home, "other"));
  mkdirSync(join(own, "keys"), { recursive: true });
  await expect(read(whole)).rejects.toThrow(`${own} `);
});

test("a .dockerignore that is not a file, or is far too large, is not read", () => {
  const own = join(home, "ignoring");
  mkdirSync(own);
  symlinkSync("/dev/zero", join(own, ".dockerignore"));
  expect(() => openContext(own)).toThrow(IGNORE);
  expect(() => openContext(join(home, "none"))).toThrow(/ENOENT/);
});

test("files of all COPYs together are limited", () => {
  const opened = openContext(context, 200_000 - 3);
  opened.take(["*.txt"], PLAIN);
  expect(() => opened.take(["src"], PLAIN)).toThrow(/\b200000\b/);
});

describe("an uploaded tar", () => {
  const made = async (entries: readonly (readonly [Parameters<Pack["entry"]>[0], string?])[], packed = true) => {
    const tar = pack();
    for (const [header, text = ""] of entries) tar.entry(header, text);
    tar.finalize();
    const pieces: Uint8Array[] = [];
    for await (const piece of tar as AsyncIterable<Uint8Array>) pieces.push(piece);
    const bytes = Buffer.concat(pieces);
    return packed ? gzipSync(bytes) : bytes;
  };
  const ENTRIES = [
    [{ name: "./app/", type: "directory", mode: 0o700 }],
    [{ name: "./app/main.py", mode: 0o755 }, "print()"],
    [{ name: "app/same", type: "link", linkname: "app/main.py" }],
    [{ name: "app/away", type: "symlink", linkname: "/etc/shadow" }],
    [{ name: "/deep/down/file" }, "deep"],
    [{ name: "../../above" }, "above"],
    [{ name: "app/left-out.key" }, "key"],
    [{ name: ".dockerignore" }, "**/*.key"],
    [{ name: "pipe", type: "fifo" }],
  ] as const;

  test.each([true, false])("is the source of COPYs, with or without gzip", async (packed) => {
    const sent = new Context(await archiveBeside(await made(ENTRIES, packed)));
    expect(await read(sent.take(["app"], PLAIN))).toEqual({
      only: null,
      entries: {
        away: "symlink 644 0:0 /etc/shadow",
        "main.py": "file 755 0:0 7",
        same: "file 755 0:0 7",
      },
    });
    expect(await read(sent.take(["deep", "*bove"], PLAIN))).toMatchObject({
      entries: { down: "directory 755 0:0 0", "down/file": "file 644 0:0 4", above: "file 644 0:0 5" },
    });
    expect(await read(sent.take(["app/main.py"], PLAIN))).toMatchObject({ only: "main.py" });
    for (const none of ["away/passwd", "app/away/x", "pipe", "app/left-out.key"])
      expect(() => sent.take([none], PLAIN)).toThrow(`COPY ${none}: `);
  });

  test("is rejected if it is invalid or exceeds the limit", async () => {
    for (const bytes of [Buffer.from("no tar at all".repeat(100)), Buffer.from([0x1f, 0x8b, 1, 2, 3])])
      await expect(archiveBeside(bytes)).rejects.toThrow(/context: .*\btar\b/);
    const zeros = await made([[{ name: "bomb" }, "\0".repeat(130 * 1024 * 1024)]]);
    expect(zeros.byteLength).toBeLessThan(1024 * 1024);
    await expect(archiveBeside(zeros)).rejects.toThrow(/context: .*\b128 MiB/);
    const many = Array.from({ length: 20_001 }, (_, n) => [{ name: `${n}` }] as const);
    await expect(archiveBeside(await made(many))).rejects.toThrow(/context: .*\b20000\b/);
    const deep = await made([[{ name: `${"a/".repeat(200_000)}f` }]]);
    await expect(archiveBeside(deep)).rejects.toThrow(/context: .*\b4096\b/);
  });
});
