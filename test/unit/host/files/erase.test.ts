import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Beneath } from "../../../../daemon/host/files/beneath.ts";
import { readEntries } from "../../../../daemon/host/files/entries.ts";
import { erase, eraseDirectory, eraseHidden, type Freed } from "../../../../daemon/host/files/erase.ts";
import { toRaw } from "../../../../daemon/host/files/raw-path.ts";
import { makeNest } from "../../../harness/nest.ts";

let directory: string;
let root: Beneath;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-erase-"));
  root = Beneath.open(directory);
});
afterEach(() => {
  root[Symbol.dispose]();
  rmSync(directory, { recursive: true, force: true });
});

const openFiles = () => readdirSync("/proc/self/fd").length;

describe("erase", () => {
  it("removes wide and mixed trees, never link targets", async () => {
    mkdirSync(join(directory, "tree/a/b/c"), { recursive: true });
    writeFileSync(join(directory, "kept"), "kept");
    symlinkSync("../kept", join(directory, "tree/link"));
    symlinkSync("..", join(directory, "tree/a/up"));
    for (let index = 0; index < 3000; index++) writeFileSync(join(directory, "tree/a/b", `f${index}`), "");
    for (let index = 0; index < 300; index++)
      mkdirSync(join(directory, "tree/a/b/c", `d${index}/e`), { recursive: true });
    await erase(root, toRaw("tree"));
    expect(readdirSync(directory)).toEqual(["kept"]);
    expect(readFileSync(join(directory, "kept"), "utf8")).toBe("kept");
    await erase(root, toRaw("kept"));
    expect(readdirSync(directory)).toEqual([]);
    await expect(erase(root, toRaw("kept"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("removes a tree deeper than any path, with a bounded number of descriptors", async () => {
    (await makeNest(directory, 3000))[Symbol.dispose]();
    const before = openFiles();
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, openFiles() - before);
    }, 5);
    await erase(root, toRaw("d"));
    clearInterval(watch);
    expect(readdirSync(directory)).toEqual([]);
    expect(openFiles()).toBe(before);
    expect(most).toBeLessThan(150);
  }, 60_000);

  it("returns the freed space: each file once, and none with another link", async () => {
    mkdirSync(join(directory, "tree/a/b"), { recursive: true });
    for (const name of ["one", "two"]) writeFileSync(join(directory, "tree/a/b", name), Buffer.alloc(64 * 1024));
    writeFileSync(join(directory, "tree/linked"), Buffer.alloc(64 * 1024));
    linkSync(join(directory, "tree/linked"), join(directory, "kept"));
    const whole = { used_bytes: 0, file_count: 0, entry_count: 0 };
    const onFreed = (freed: Freed) => {
      whole.used_bytes += freed.used_bytes;
      whole.file_count += freed.file_count;
      whole.entry_count += freed.entry_count;
    };
    const directories = ["tree", "tree/a", "tree/a/b"].map((path) => statSync(join(directory, path)).blocks * 512);
    await erase(root, toRaw("tree"), { onFreed });
    const used_bytes = 128 * 1024 + directories.reduce((sum, bytes) => sum + bytes, 0);
    expect(whole).toEqual({ used_bytes, file_count: 2, entry_count: 6 });
  });

  it("removes a directory by its path; a missing one is no error", async () => {
    const room = join(directory, "rom_1");
    mkdirSync(join(room, "drive"), { recursive: true });
    (await makeNest(join(room, "drive"), 1000))[Symbol.dispose]();
    await eraseDirectory(room, () => false);
    await eraseDirectory(room, () => false);
    await eraseDirectory(join(directory, "never/was"), () => false);
    expect(readdirSync(directory)).toEqual([]);
  }, 60_000);

  it("times out if an entry cannot be removed, and leaves it hidden", async ({ skip }) => {
    const stays = join(directory, "tree/stays");
    mkdirSync(stays, { recursive: true });
    try {
      execFileSync("mount", ["-t", "tmpfs", "tmpfs", stays], { stdio: "pipe" });
    } catch (error) {
      console.log(`skipped: no tmpfs can be mounted here: ${String(error).split("\n")[0]}`);
      return skip();
    }
    const [hidden, busy] = [() => readdirSync(directory)[0] ?? "", "faster than it can be erased"];
    try {
      await expect(erase(root, toRaw("tree"), { withinMs: 100 })).rejects.toThrow(busy);
      expect(hidden()).toMatch(/^\.roomd-/);
    } finally {
      execFileSync("umount", [join(directory, hidden(), "stays")]);
    }
    await eraseHidden(root, toRaw(hidden()));
    expect(readdirSync(directory)).toEqual([]);
  });

  it("hides the tree immediately, and removes entries added during the erasure", async () => {
    for (let index = 0; index < 2000; index++) mkdirSync(join(directory, "tree", `d${index}`), { recursive: true });
    const held = root.directory(toRaw("tree"));
    let added = 0;
    const filling = setInterval(() => {
      expect(readdirSync(directory)).not.toContain("tree");
      if (added < 50) void held.makeDirectory(toRaw(`late${added++}`), 0o755).catch(() => {});
    }, 1);
    await erase(root, toRaw("tree"));
    clearInterval(filling);
    held[Symbol.dispose]();
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe("readEntries", () => {
  it("gives each entry once with its type, a few hundred at a time", async () => {
    for (let index = 0; index < 5000; index++) writeFileSync(join(directory, `file-${index}`), "");
    mkdirSync(join(directory, "d"));
    symlinkSync("d", join(directory, "l"));
    const names = new Set<string>();
    const types: Record<string, number> = {};
    for await (const entries of readEntries(root)) {
      expect(entries.length).toBeLessThan(2000);
      for (const { name, type } of entries) {
        names.add(name);
        types[type] = (types[type] ?? 0) + 1;
      }
    }
    expect(names.size).toBe(5002);
    expect(types).toEqual({ file: 5000, directory: 1, symlink: 1 });
  });
});
