import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RoomFixture } from "./room-fixture.ts";

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

describe("fs_stat", () => {
  it("describes files, directories, links as links, and the drive itself", async () => {
    mkdirSync(room.path("d"), { mode: 0o700 });
    writeFileSync(room.path("d/f"), "abc");
    symlinkSync("../../etc", room.path("d/link"));
    expect((await room.call("fs_stat", { path: "d/f" })).body).toMatchObject({
      path: "/d/f",
      guest_path: "/mnt/drive/d/f",
      name: "f",
      type: "file",
      size_bytes: 3,
      mode: "0644",
    });
    expect((await room.call("fs_stat", { path: "d" })).body).toMatchObject({ type: "directory", mode: "0700" });
    expect((await room.call("fs_stat", { path: "d/link" })).body).toMatchObject({
      type: "symlink",
      target: "../../etc",
    });
    expect((await room.call("fs_stat", { path: "/" })).body).toMatchObject({
      path: "/",
      guest_path: "/mnt/drive",
      name: "/",
      type: "directory",
    });
    expect(await room.codeOf("fs_stat", { path: "no" })).toBe("path_not_found");
    expect(await room.codeOf("fs_stat", { path: "no/no" })).toBe("path_not_found");
    expect(await room.codeOf("fs_stat", { path: "d/link/passwd" })).toBe("path_escapes_drive");
  });
});

describe("fs_mkdir", () => {
  it("creates the parent directories, and accepts an existing one", async () => {
    const made = await room.call("fs_mkdir", { path: "a/b/c", mode: "750" });
    expect(made.outcome).toBe("created");
    expect(made.body).toMatchObject({ path: "/a/b/c", name: "c", type: "directory", mode: "0750", created: true });
    expect(statSync(room.path("a/b")).mode & 0o7777).toBe(0o755);
    expect((await room.call("fs_mkdir", { path: "a/b/c" })).outcome).toBe("existing");
    expect((await room.call("fs_mkdir", { path: "/" })).outcome).toBe("existing");
  });

  it("follows links within the drive", async () => {
    mkdirSync(room.path("x/y"), { recursive: true });
    symlinkSync("../../z", room.path("x/y/up"));
    mkdirSync(room.path("z"));
    expect((await room.call("fs_mkdir", { path: "x/y/up/new/deep" })).outcome).toBe("created");
    expect(existsSync(room.path("z/new/deep"))).toBe(true);
  });

  it("rejects names of other entries, and paths that lead out", async () => {
    writeFileSync(room.path("f"), "");
    symlinkSync("../outside", room.path("out"));
    symlinkSync("nothing", room.path("dangling"));
    expect(await room.codeOf("fs_mkdir", { path: "f" })).toBe("already_exists");
    expect(await room.codeOf("fs_mkdir", { path: "f/d" })).toBe("invalid_path");
    expect(await room.codeOf("fs_mkdir", { path: "out" })).toBe("path_escapes_drive");
    expect(await room.codeOf("fs_mkdir", { path: "out/d" })).toBe("path_escapes_drive");
    expect(await room.codeOf("fs_mkdir", { path: "dangling/d" })).toBe("invalid_path");
    expect(readdirSync(room.outside)).toEqual([]);
  });

  it("allows concurrent creation of the same tree", async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async () => (await room.call("fs_mkdir", { path: "a/b/c/d" })).outcome),
    );
    expect(outcomes).toContain("created");
  });
});

describe("fs_move", () => {
  it("moves files, directories and links, creating directories above the target", async () => {
    mkdirSync(room.path("d"));
    writeFileSync(room.path("d/f"), "1");
    symlinkSync("f", room.path("d/link"));
    const moved = await room.call("fs_move", { from: "d", to: "new/place" });
    expect(moved.body).toMatchObject({ path: "/new/place", guest_path: "/mnt/drive/new/place", type: "directory" });
    expect((await room.call("fs_move", { from: "new/place/link", to: "link" })).body.type).toBe("symlink");
    expect(readlinkSync(room.path("link"))).toBe("f");
    expect(readFileSync(room.path("new/place/f"), "utf8")).toBe("1");
  });

  it("replaces only with overwrite", async () => {
    writeFileSync(room.path("a"), "a");
    writeFileSync(room.path("b"), "b");
    expect(await room.codeOf("fs_move", { from: "a", to: "b" })).toBe("already_exists");
    expect(readFileSync(room.path("b"), "utf8")).toBe("b");
    expect(await room.codeOf("fs_move", { from: "a", to: "b", overwrite: true })).toBe("done");
    expect(readFileSync(room.path("b"), "utf8")).toBe("a");
    expect(existsSync(room.path("a"))).toBe(false);
  });

  it("names the obstacle", async () => {
    writeFileSync(room.path("f"), "");
    mkdirSync(room.path("d/e"), { recursive: true });
    mkdirSync(room.path("empty"));
    symlinkSync("../outside", room.path("out"));
    const overwrite = true;
    expect(await room.codeOf("fs_move", { from: "no", to: "x" })).toBe("path_not_found");
    expect(await room.codeOf("fs_move", { from: "no/no", to: "x" })).toBe("path_not_found");
    expect(await room.codeOf("fs_move", { from: "f", to: "d", overwrite })).toBe("is_directory");
    expect(await room.codeOf("fs_move", { from: "d", to: "f", overwrite })).toBe("already_exists");
    expect(await room.codeOf("fs_move", { from: "empty", to: "d", overwrite })).toBe("not_empty");
    expect(await room.codeOf("fs_move", { from: "d", to: "d/e/x" })).toBe("invalid_path");
    expect(await room.codeOf("fs_move", { from: "/", to: "x" })).toBe("invalid_path");
    expect(await room.codeOf("fs_move", { from: "f", to: "/" })).toBe("invalid_path");
    expect(await room.codeOf("fs_move", { from: "f", to: "f/x" })).toBe("invalid_path");
    expect(await room.codeOf("fs_move", { from: "f", to: "out/f" })).toBe("path_escapes_drive");
    expect(await room.codeOf("fs_move", { from: "out/f", to: "g" })).toBe("path_escapes_drive");
    expect(await room.codeOf("fs_move", { from: "d", to: "empty", overwrite })).toBe("done");
    expect(readdirSync(room.directory).sort()).toEqual(["empty", "f", "out"]);
  });
});

describe("fs_delete", () => {
  it("deletes files, links and empty directories", async () => {
    writeFileSync(room.path("f"), "");
    symlinkSync("f", room.path("link"));
    mkdirSync(room.path("d"));
    const deleted = await room.call("fs_delete", { path: "link" });
    expect(deleted.body).toEqual({ path: "/link", guest_path: "/mnt/drive/link", state: "deleted" });
    expect(existsSync(room.path("f"))).toBe(true);
    expect(await room.codeOf("fs_delete", { path: "f" })).toBe("done");
    expect(await room.codeOf("fs_delete", { path: "d" })).toBe("done");
    expect(readdirSync(room.directory)).toEqual([]);
  });

  it("deletes a tree only with recursive, and no link targets", async () => {
    mkdirSync(room.path("d/e"), { recursive: true });
    writeFileSync(room.path("kept"), "kept");
    writeFileSync(`${room.outside}/kept`, "kept");
    symlinkSync("../../kept", room.path("d/e/inside"));
    symlinkSync("../../../outside", room.path("d/e/out"));
    symlinkSync(room.outside, room.path("d/absolute"));
    expect(await room.codeOf("fs_delete", { path: "d" })).toBe("not_empty");
    expect(await room.codeOf("fs_delete", { path: "d", recursive: true })).toBe("done");
    expect(readdirSync(room.directory)).toEqual(["kept"]);
    expect(readFileSync(`${room.outside}/kept`, "utf8")).toBe("kept");
    symlinkSync("../outside", room.path("out"));
    expect(await room.codeOf("fs_delete", { path: "out/kept" })).toBe("path_escapes_drive");
    expect(await room.codeOf("fs_delete", { path: "out", recursive: true })).toBe("done");
    expect(readdirSync(room.outside)).toEqual(["kept"]);
  });

  it("rejects the drive itself and missing paths", async () => {
    expect(await room.codeOf("fs_delete", { path: "/", recursive: true })).toBe("invalid_path");
    expect(await room.codeOf("fs_delete", { path: "no" })).toBe("path_not_found");
    expect(await room.codeOf("fs_delete", { path: "no/no" })).toBe("path_not_found");
    expect(lstatSync(room.directory).isDirectory()).toBe(true);
  });
});
