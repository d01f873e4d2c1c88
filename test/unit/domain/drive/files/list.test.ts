import { closeSync, mkdirSync, openSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RoomFixture } from "../room-fixture.ts";

const MANY = process.env.ROOMD_TEST_LONG === "1" ? 1_000_000 : 100_000;

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

async function allPages(input: Record<string, unknown>): Promise<string[]> {
  const paths: string[] = [];
  let cursor: string | null = null;
  do {
    const { body } = await room.call("fs_list", cursor === null ? input : { ...input, cursor });
    paths.push(...body.items.map(({ path }) => path));
    cursor = body.next_cursor;
  } while (cursor !== null);
  return paths;
}

describe("fs_list", () => {
  it("describes entries; without parameters the whole drive", async () => {
    mkdirSync(room.path("d/e"), { recursive: true });
    writeFileSync(room.path("d/e/f"), "12345", { mode: 0o640 });
    symlinkSync("/etc/passwd", room.path("link"));
    const { body } = await room.call("fs_list", {});
    expect(body.path).toBe("/");
    expect(body.next_cursor).toBeNull();
    expect(body.items.map(({ path, type }) => [path, type])).toEqual([
      ["/d", "directory"],
      ["/d/e", "directory"],
      ["/d/e/f", "file"],
      ["/link", "symlink"],
    ]);
    expect(body.items[2]).toEqual({
      path: "/d/e/f",
      name: "f",
      type: "file",
      size_bytes: 5,
      mode: "0640",
      modified_at: expect.stringMatching(/Z$/),
    });
    expect(body.items[3]?.target).toBe("/etc/passwd");
  });

  it("lists one directory for a path, in any spelling and through links within the drive", async () => {
    mkdirSync(room.path("d/e"), { recursive: true });
    writeFileSync(room.path("d/e/f"), "");
    symlinkSync("d", room.path("link"));
    for (const path of ["d", "/mnt/drive/d/", "link"]) {
      const { items } = (await room.call("fs_list", { path })).body;
      expect(items.map(({ name }) => name)).toEqual(["e"]);
    }
    expect(await allPages({ path: "link", recursive: true })).toEqual(["/link/e", "/link/e/f"]);
    expect(await allPages({ path: "/", recursive: false })).toEqual(["/d", "/link"]);
  });

  it("rejects a file, a missing path and a path that leads out", async () => {
    writeFileSync(room.path("f"), "");
    symlinkSync("../outside", room.path("out"));
    expect(await room.codeOf("fs_list", { path: "f" })).toBe("invalid_path");
    expect(await room.codeOf("fs_list", { path: "no" })).toBe("path_not_found");
    expect(await room.codeOf("fs_list", { path: "out" })).toBe("path_escapes_drive");
  });

  it("pages through any tree in one order, for any page size", async () => {
    const name = fc.constantFrom("a", "b", "a.txt", "a-", "é", "z\n", "A", "~");
    const tree = fc.array(fc.array(name, { minLength: 1, maxLength: 4 }), { maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(tree, fc.integer({ min: 1, max: 9 }), fc.boolean(), async (paths, limit, recursive) => {
        rmSync(room.directory, { recursive: true });
        mkdirSync(room.directory);
        for (const path of paths) mkdirSync(room.path(...path), { recursive: true });
        const whole = (await room.call("fs_list", { path: "/", recursive, limit: 1000 })).body;
        const found = whole.items.map((item) => item.path);
        expect(found).toEqual(expectedOrder(paths, recursive));
        expect(await allPages({ path: "/", recursive, limit })).toEqual(found);
      }),
      { numRuns: 60 },
    );
  });

  it("continues after a page although the last entry was deleted or earlier ones were added", async () => {
    for (const name of ["a", "b", "c", "d"]) mkdirSync(room.path(name));
    const { next_cursor } = (await room.call("fs_list", { limit: 2 })).body;
    rmSync(room.path("b"), { recursive: true });
    mkdirSync(room.path("a/later"));
    const rest = (await room.call("fs_list", { limit: 2, cursor: next_cursor })).body;
    expect(rest.items.map(({ name }) => name)).toEqual(["c", "d"]);
    expect(rest.next_cursor).toBeNull();
  });

  it("rejects an edited cursor and one of another list", async () => {
    for (const name of ["a", "b", "c"]) mkdirSync(room.path(name, "x"), { recursive: true });
    const { next_cursor } = (await room.call("fs_list", { limit: 1 })).body;
    const good = next_cursor ?? "";
    const swapped = (good.startsWith("A") ? "B" : "A") + good.slice(1);
    for (const cursor of ["", "x", `${good}A`, `${good} `, good.slice(1), good.slice(0, -1), swapped]) {
      expect(await room.codeOf("fs_list", { cursor })).toBe("invalid_cursor");
    }
    expect(await room.codeOf("fs_list", { cursor: good, path: "a" })).toBe("invalid_cursor");
    expect(await room.codeOf("fs_list", { cursor: good, recursive: false })).toBe("invalid_cursor");
    expect(await room.codeOf("fs_list", { cursor: good, limit: 1 })).toBe("done");
  });

  it("shows names of any bytes as JSON can, and hides temporary files", async () => {
    const hidden = `.roomd-${"0".repeat(32)}`;
    for (const name of ["two\nlines", '"quoted"', "\u001b[31m", ".roomd-mine", hidden])
      writeFileSync(room.path(name), "");
    writeFileSync(Buffer.concat([Buffer.from(`${room.directory}/`), Buffer.from([0x66, 0xff, 0xfe])]), "");
    const { items } = (await room.call("fs_list", {})).body;
    const names = items.map(({ name }) => name);
    expect(names).toEqual(["\u001b[31m", '"quoted"', ".roomd-mine", "f\ufffd\ufffd", "two\nlines"]);
    expect(JSON.parse(JSON.stringify(names))).toEqual(names);
    expect(await allPages({ limit: 1 })).toEqual(names.map((name) => `/${name}`));
    expect((await room.call("fs_read", { path: "two\nlines" })).body.content).toBe("");
    expect(await room.codeOf("fs_read", { path: hidden })).toBe("invalid_path");
  });

  it(`does not block the event loop for a directory of ${MANY} entries`, async () => {
    mkdirSync(room.path("many"));
    const nameOf = (index: number) => `entry-${String(index).padStart(7, "0")}`;
    for (let index = 0; index < MANY; index++) closeSync(openSync(room.path("many", nameOf(index)), "w"));
    let turns = 0;
    let longestMs = 0;
    let listing = true;
    const other = (async () => {
      while (listing) {
        const startedAt = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 0));
        longestMs = Math.max(longestMs, performance.now() - startedAt);
        turns++;
      }
    })();
    const startedAt = performance.now();
    const { items, next_cursor } = (await room.call("fs_list", { path: "many", limit: 1000 })).body;
    const tookMs = performance.now() - startedAt;
    listing = false;
    await other;
    const waits = `a timer ran ${turns} times meanwhile and waited ${longestMs.toFixed(1)} ms at most`;
    console.log(`the first 1000 of ${MANY} entries in ${tookMs.toFixed(0)} ms; ${waits}`);
    expect(items.map(({ name }) => name)).toEqual(Array.from({ length: 1000 }, (_, index) => nameOf(index)));
    // Read in one go it would have run once; how long a turn takes is the machine's affair.
    expect(turns).toBeGreaterThan(2);
    const rest = (await room.call("fs_list", { path: "many", limit: 5, cursor: next_cursor })).body;
    expect(rest.items[0]?.name).toBe(nameOf(1000));
    expect(await room.codeOf("fs_delete", { path: "many", recursive: true })).toBe("done");
  }, 300_000);
});

function expectedOrder(paths: readonly string[][], recursive: boolean): string[] {
  const all = new Set<string>();
  for (const path of paths) {
    for (let depth = 1; depth <= (recursive ? path.length : 1); depth++) all.add(path.slice(0, depth).join("/"));
  }
  // "/" sorts before every other byte of a name here, so that a directory comes before its siblings' longer names.
  const key = (path: string) => Buffer.from(path.replaceAll("/", "\0")).toString("latin1");
  return [...all].sort((a, b) => (key(a) < key(b) ? -1 : 1)).map((path) => `/${path}`);
}
