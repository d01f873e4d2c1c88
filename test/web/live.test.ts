/** Live updates of the hub's pages, in a real browser: many windows concurrently, and a deadlock on every tab of its room. */
import { beforeAll, expect, test } from "vitest";
import { CHROMIUM, hasBrowser, seenBy } from "../harness/browser/seen-by.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";

const ROOM = "stuck";
/** If other load leaves little of the processors: the allowed multiple of the duration of one window, or of one change on one page. */
const SLOWER = 4;
const PATHS = ["", "/timeline", "/waits", "/messages", "/drive", "/agents/alice/terminal"];
const WINDOWS = PATHS.map((path) => ({ path, shows: path.includes("alice") ? "no terminal" : "Checkpoints" }));
if (!hasBrowser) console.log(`live pages: left out, because there is no ${CHROMIUM}`);

let seen: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  await using daemon = await TestDaemon.start();
  await daemon.room(ROOM);
  for (const agent of ["alice", "bob"]) await daemon.ok("GET", `/v1/rooms/${ROOM}/messages?agent_id=${agent}`);
  seen = await seenBy("live-reader.mjs", daemon, { key: daemon.apiKey, room: ROOM, windows: WINDOWS }, {});
  console.log(
    `a seventh window loads in ${Math.round(seen.seventh_ms)} ms; a deadlock is on every page after ${Math.round(seen.deadlock_ms)} ms`,
  );
}, 300_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("with six windows that follow a room, a seventh loads in under a second", () => {
  expect(seen.seventh_ms).toBeLessThan(Math.max(1000, SLOWER * seen.alone_ms));
  expect(seen.live).toBe(6);
});

inBrowser("a deadlock is shown in every tab of its room within a second, as a sentence without IDs", () => {
  expect(seen.deadlock_ms).toBeLessThan(Math.max(1000, SLOWER * seen.wait_ms));
  expect(seen.sentences).toHaveLength(14);
  for (const sentence of seen.sentences) {
    expect(sentence).toMatch(/\balice\b.*\bbob\b|\bbob\b.*\balice\b/);
    expect(sentence).not.toContain("msg_");
  }
});

inBrowser("the room's overview and timeline show waits between calls", () => {
  expect(seen.waiting).toBe("2");
  expect(seen.waits_for.join()).toMatch(/\bbob\b.*\balice\b/);
  expect(seen.lanes).toBe(2);
});

inBrowser("no complaints on these pages", () => {
  expect(seen.noted).toEqual({ complaints: [], violations: [], strangers: [], overflows: [] });
});
