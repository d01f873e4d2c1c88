/** Six windows of the hub, each with a terminal of a real guest that prints: the load time of a seventh, and the updates of each. */
import { expect, test } from "vitest";
import { CHROMIUM, hasBrowser, seenBy } from "../../harness/browser/seen-by.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { testAlone } from "../../harness/guests.ts";

const ROOM = "stuck";
const WINDOWS = 6;
const SLOWER = 4;
const DEADLINE_MS = 300_000;
const PRINT = "n=0; while :; do n=$((n + 1)); echo line-$n; sleep 1; done";

test("a browser is installed for the windows", () => {
  if (!hasBrowser) console.log(`windows with terminals: left out, because there is no ${CHROMIUM}`);
});

if (hasBrowser) {
  testAlone(
    "beside six windows with terminals a seventh loads in under a second, and all show a deadlock within one",
    {},
    follow,
    DEADLINE_MS,
  );
}

async function follow(daemon: TestDaemon): Promise<void> {
  await daemon.room(ROOM);
  for (const agent of ["alice", "bob"]) await daemon.ok("GET", `/v1/rooms/${ROOM}/messages?agent_id=${agent}`);
  await daemon.sandbox(ROOM, "worker", 9100);
  await daemon.exec(ROOM, "worker", { command: "exit 3" });
  const windows: Json[] = [];
  for (let n = 0; n < WINDOWS; n++) {
    const argv = ["sh", "-c", PRINT];
    const made = await daemon.ok("POST", `/v1/rooms/${ROOM}/sandboxes/worker/terminals`, { rows: 24, cols: 80, argv });
    windows.push({ path: `/agents/worker/terminal?terminal=${made.terminal_id}`, shows: "line-" });
  }
  const seen = await seenBy(
    "live-reader.mjs",
    daemon,
    { key: daemon.apiKey, room: ROOM, windows, isFailing: true },
    {},
  );
  console.log(
    `beside ${WINDOWS} terminals a window loads in ${Math.round(seen.seventh_ms)} ms, alone in ${Math.round(seen.alone_ms)}; a deadlock is on every page after ${Math.round(seen.deadlock_ms)} ms, one wait on one page after ${Math.round(seen.wait_ms)}`,
  );
  expect(seen.live).toBe(WINDOWS);
  // If other load leaves little of the processors: within a few times the duration of one window, or of one change on one page.
  expect(seen.seventh_ms).toBeLessThan(Math.max(1000, SLOWER * seen.alone_ms));
  expect(seen.deadlock_ms).toBeLessThan(Math.max(1000, SLOWER * seen.wait_ms));
  // The guest's own, and no comparison with the process on the host, which is larger.
  expect(seen.memory).toContain("256 MiB");
  expect(seen.failures).toContain("exit 3");
  expect(seen.noted).toEqual({ complaints: [], violations: [], strangers: [], overflows: [] });
}
