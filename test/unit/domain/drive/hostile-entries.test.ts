import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RoomFixture, streamOf } from "./room-fixture.ts";

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

/** Result of each call that takes a path, for `path`. */
async function everyCall(path: string): Promise<Record<string, string>> {
  writeFileSync(room.path("mover"), "");
  const codes: Record<string, string> = {};
  const tryCall = async (label: string, ...call: Parameters<RoomFixture["codeOf"]>) => {
    codes[label] = await room.codeOf(...call);
  };
  await tryCall("read", "fs_read", { path });
  await tryCall("raw", "fs_read", { path, format: "raw" });
  await tryCall("get", "file_get", { path });
  await tryCall("list", "fs_list", { path });
  await tryCall("stat", "fs_stat", { path });
  await tryCall("append", "fs_write", { path, content: "x", append: true });
  await tryCall("match", "fs_write", { path, content: "x", if_match: "0" });
  await tryCall("create", "fs_write", { path, content: "x", overwrite: false });
  await tryCall("write", "fs_write", { path, content: "x" });
  await tryCall("put", "file_put", { path }, { body: streamOf("x") });
  await tryCall("mkdir", "fs_mkdir", { path });
  await tryCall("move", "fs_move", { from: "mover", to: path });
  await tryCall("replace", "fs_move", { from: "mover", to: path, overwrite: true });
  await tryCall("delete", "fs_delete", { path, recursive: true });
  return codes;
}

describe("links that leave the drive", () => {
  beforeEach(() => {
    writeFileSync(join(room.outside, "secret"), "secret");
    mkdirSync(join(room.outside, "other-room"));
    symlinkSync(room.outside, room.path("absolute"));
    symlinkSync("../outside", room.path("relative"));
    symlinkSync("relative", room.path("through"));
    symlinkSync("/proc/self/root", room.path("magic"));
    symlinkSync("/proc/self/cwd", room.path("cwd"));
    symlinkSync("..", room.path("up"));
    symlinkSync("/", room.path("root"));
  });

  it.each(["absolute", "relative", "through", "magic", "cwd", "up", "root"])(
    "%s/… is path_escapes_drive in every call, and nothing outside is touched",
    async (link) => {
      for (const below of ["secret", "other-room", "new", "new/deeper"]) {
        const codes = await everyCall(`${link}/${below}`);
        expect(new Set(Object.values(codes))).toEqual(new Set(["path_escapes_drive"]));
      }
      expect(readdirSync(room.outside).sort()).toEqual(["other-room", "secret"]);
      expect(readFileSync(join(room.outside, "secret"), "utf8")).toBe("secret");
      expect(existsSync(join(room.base, "new"))).toBe(false);
    },
  );

  it("in the last component are refused for reading, and replaced or deleted as links", async () => {
    symlinkSync("../outside/secret", room.path("last"));
    const codes = await everyCall("last");
    expect(codes).toMatchObject({
      read: "path_escapes_drive",
      raw: "path_escapes_drive",
      get: "path_escapes_drive",
      list: "path_escapes_drive",
      append: "path_escapes_drive",
      match: "path_escapes_drive",
      stat: "done",
      create: "already_exists",
      write: "done",
      delete: "done",
    });
    expect(readFileSync(join(room.outside, "secret"), "utf8")).toBe("secret");
  });

  it("inside a listed tree are listed as links and not followed", async () => {
    const { items } = (await room.call("fs_list", {})).body;
    expect(items).toHaveLength(7);
    expect(new Set(items.map(({ type }) => type))).toEqual(new Set(["symlink"]));
    expect(await room.drive.measure(room.room)).toMatchObject({ file_count: 0 });
  });

  it("in the drive's own parent directories are trusted", async () => {
    renameSync(room.directory, join(room.base, "moved"));
    symlinkSync("moved", room.directory);
    expect(await room.codeOf("fs_write", { path: "f", content: "x" })).toBe("done");
  });
});

describe("links in a circle", () => {
  it("are invalid_path", async () => {
    symlinkSync("circle", room.path("circle"));
    expect(await room.codeOf("fs_read", { path: "circle" })).toBe("invalid_path");
    expect(await room.codeOf("fs_list", { path: "circle" })).toBe("invalid_path");
    expect(await room.codeOf("fs_write", { path: "circle/x", content: "" })).toBe("invalid_path");
    expect(await room.codeOf("fs_write", { path: "circle", content: "" })).toBe("done");
  });
});

describe("entries that are neither file nor directory", () => {
  const make: Record<string, () => void | Promise<void>> = {
    fifo: () => void execFileSync("mkfifo", [room.path("it")]),
    socket: () => new Promise((resolve) => void createServer().listen(room.path("it"), resolve).unref()),
    "character device": () => void execFileSync("mknod", [room.path("it"), "c", "1", "3"], { stdio: "pipe" }),
    "tape drive": () => void execFileSync("mknod", [room.path("it"), "c", "9", "0"], { stdio: "pipe" }),
    "block device": () => void execFileSync("mknod", [room.path("it"), "b", "7", "0"], { stdio: "pipe" }),
  };

  it.each(Object.keys(make))("a %s never blocks a call and is never opened", async (kind) => {
    await make[kind]?.();
    symlinkSync("it", room.path("link"));
    for (const path of ["it", "link"]) {
      for (const [name, more] of [
        ["fs_read", {}],
        ["fs_read", { format: "raw" }],
        ["file_get", {}],
        ["fs_list", {}],
        ["fs_write", { content: "x", append: true }],
        ["fs_write", { content: "x", if_match: "0" }],
      ] as const) {
        expect([name, await room.codeOf(name, { path, ...more })]).toEqual([name, "invalid_path"]);
      }
    }
    expect((await room.call("fs_stat", { path: "it" })).body.type).toBe("other");
    expect((await room.call("fs_list", {})).body.items.map(({ type }) => type)).toEqual(
      ["symlink", "other"].toSorted(() => -1),
    );
    expect(await room.codeOf("fs_write", { path: "it", content: "x" })).toBe("invalid_path");
    expect(await room.codeOf("file_put", { path: "it" }, { body: streamOf("x") })).toBe("invalid_path");
    expect(await room.codeOf("fs_write", { path: "it/x", content: "x" })).toBe("invalid_path");
    expect(await room.codeOf("fs_mkdir", { path: "it" })).toBe("already_exists");
    expect(await room.codeOf("fs_move", { from: "it", to: "moved" })).toBe("done");
    mkdirSync(room.path("d"));
    expect(await room.codeOf("fs_move", { from: "moved", to: "d/moved" })).toBe("done");
    expect(await room.codeOf("fs_delete", { path: "d", recursive: true })).toBe("done");
    expect(readdirSync(room.directory)).toEqual(["link"]);
  });
});
