/**
 * Retried writes with the record of the same call: content that is already there is not written twice, and other callers' files are not
 * mistaken for it.
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type StartedWork, UnkeptEffects } from "../../../../../daemon/core/call/call-effects.ts";
import { RoomFixture } from "../room-fixture.ts";

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

const recorded: StartedWork[] = [];
const once = (started?: StartedWork) => ({
  work: Object.assign(new UnkeptEffects(), {
    begun: started,
    noteFirst: async (note: StartedWork) => void recorded.push(note),
  }),
});
const append = (started?: StartedWork) =>
  room.call("fs_write", { path: "/log", content: "line\n", append: true }, {}, undefined, once(started));
const log = () => readFileSync(room.path("log"), "utf8");

test("an append records its offset before it writes", async () => {
  await append();
  await append();
  expect(recorded.splice(0)).toEqual([{ at: 0 }, { at: 5 }]);
  expect(log()).toBe("line\nline\n");
});

test.each([
  ["all of it is there", "one\nline\n", "one\nline\n"],
  ["nothing of it is there", "one\n", "one\nline\n"],
  ["part of it is there", "one\nli", "one\nline\n"],
  ["another's came after it", "one\nline\nmore\n", "one\nline\nmore\n"],
  ["another's is in its place", "one\nmore\n", "one\nmore\nline\n"],
])("a retried append is made once if %s", async (_, before, after) => {
  writeFileSync(room.path("log"), before);
  await append({ at: 4 });
  expect(log()).toBe(after);
});

test("an append that created its file is not repeated", async () => {
  await append();
  await append({ at: 0 });
  expect(log()).toBe("line\n");
});

test("a create-only file exists for a retry of its call, and for no other call", async () => {
  const write = (started?: StartedWork) =>
    room.call("fs_write", { path: "/new", content: "x", overwrite: false }, {}, undefined, once(started));
  expect((await write()).outcome).toBe("created");
  await expect(write()).rejects.toMatchObject({ code: "already_exists" });
  expect((await write({ at: 0 })).outcome).toBe("created");
  appendFileSync(room.path("new"), "y");
  await expect(write({ at: 0 })).rejects.toMatchObject({ code: "already_exists" });
});

test("a moved file is found at its target, and another file is not mistaken for it", async () => {
  writeFileSync(room.path("draft"), "x");
  const move = (started?: StartedWork) =>
    room.call("fs_move", { from: "/draft", to: "/final" }, {}, undefined, once(started));
  recorded.length = 0;
  await move();
  const [started] = recorded.splice(0);
  expect((await move(started)).outcome).toBe("ok");
  await expect(move()).rejects.toMatchObject({ code: "path_not_found" });
  await expect(move({ moved: "another" })).rejects.toMatchObject({ code: "path_not_found" });
});
