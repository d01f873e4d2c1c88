/** Calls that change a drive while a rollback replaces it: they fail with `invalid_state`, and neither drive is changed. */
import { mkdirSync, readdirSync, readlinkSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RoomFixture, streamOf } from "./room-fixture.ts";

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
  writeFileSync(room.path("notes.txt"), "hello\n");
});
afterEach(() => room[Symbol.dispose]());

/** Descriptors of the drive's directory in this process. */
function openDirectories(): number {
  const links = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return null; // It has been closed.
    }
  });
  return links.filter((link) => link === room.directory).length;
}

const FACTS = { path: "/new.txt", content: "x" };

test.each([
  ["fs_write", FACTS],
  ["fs_write", { ...FACTS, path: "/a/b/new.txt" }],
  ["fs_write", { ...FACTS, path: "/notes.txt", append: true }],
  ["fs_mkdir", { path: "/made" }],
  ["fs_move", { from: "/notes.txt", to: "/moved.txt" }],
  ["fs_delete", { path: "/notes.txt" }],
  ["file_put", { path: "/new.txt" }],
])("%s %j during a rollback of the room", async (name, input) => {
  const before = join(room.outside, "before");
  const called = await room.drive.holding(room.room.room_uid, async () => {
    const opened = openDirectories();
    const code = room.codeOf(name, input, { body: streamOf("x") });
    // It waits then.
    while (openDirectories() === opened) await new Promise(setImmediate);
    renameSync(room.directory, before);
    mkdirSync(room.directory);
    return { code };
  });
  expect(await called.code).toBe("invalid_state");
  const operation = room.drive.operations.find((bound) => bound.operation.name === name)?.operation;
  expect(operation?.errors).toContain("invalid_state");
  expect(readdirSync(room.directory)).toEqual([]);
  expect(readdirSync(before)).toEqual(["notes.txt"]);
});
