import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Beneath } from "../../../../daemon/host/files/beneath.ts";
import { readEntries } from "../../../../daemon/host/files/entries.ts";
import { erase } from "../../../../daemon/host/files/erase.ts";
import { toRaw } from "../../../../daemon/host/files/raw-path.ts";
import { WALK_DEPTH, walk } from "../../../../daemon/host/files/walk.ts";

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

/** Deeper than any path can say. */
async function makeNest(levels: number): Promise<void> {
  let at = root.directory(toRaw("."));
  for (let level = 0; level < levels; level++) {
    using above = at;
    await above.makeDirectory(toRaw("nest"), 0o755);
    at = above.directory(toRaw("nest"));
  }
  at[Symbol.dispose]();
}

describe("erase", () => {
  it("removes wide and mixed trees, never what links point to", async () => {
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
    await makeNest(3000);
    const before = openFiles();
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, openFiles() - before);
    }, 5);
    await erase(root, toRaw("nest"));
    clearInterval(watch);
    expect(readdirSync(directory)).toEqual([]);
    expect(openFiles()).toBe(before);
    expect(most).toBeLessThan(150);
  }, 60_000);

  it("hides the tree at once, and removes what is added meanwhile", async () => {
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

describe("walk", () => {
  it("visits every entry once and stops at its depth", async () => {
    await makeNest(WALK_DEPTH + 50);
    const before = openFiles();
    let visits = 0;
    await walk(root, () => void visits++);
    expect(visits).toBe(WALK_DEPTH);
    expect(openFiles()).toBe(before);
    await erase(root, toRaw("nest"));
  });

  it("goes on where a directory vanishes under it", async () => {
    for (const name of ["a", "b", "c"]) mkdirSync(join(directory, name, "x"), { recursive: true });
    const seen: string[] = [];
    await walk(root, (_, { name }) => {
      seen.push(name);
      rmSync(join(directory, name), { recursive: true, force: true });
    });
    expect(seen.sort()).toEqual(["a", "b", "c"]);
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
