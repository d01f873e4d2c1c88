/** The record of long turns: pieces with their owner, work without one, and their processor time. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LoopTime, recordTurns } from "../../../../daemon/core/loop/index.ts";
import { type RecordedTurn, TURNS_VARIABLE } from "../../../../daemon/core/loop/turn-record.ts";
import { threadTime } from "../../../../daemon/host/thread-time.ts";

const BUSY_MS = 60;

let home: string;
let time: LoopTime;
let end: () => void;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-turns-"));
  time = new LoopTime({
    now: () => performance.now(),
    defer: (callback) => void setImmediate(callback),
    after: (ms, callback) => void setTimeout(callback, ms),
    cpu: threadTime,
  });
  end = recordTurns(time, threadTime, { [TURNS_VARIABLE]: join(home, "turns") });
});
afterEach(() => {
  end();
  rmSync(home, { recursive: true });
});

/** Uses this much of the thread's processor time. */
function compute(ms: number): void {
  const until = threadTime() + ms;
  while (threadTime() < until);
}

/** The line of this label, once it is written. */
const recorded = async (label: string): Promise<RecordedTurn> =>
  await vi.waitUntil(
    () =>
      readFileSync(join(home, "turns"), "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as RecordedTurn)
        .find((turn) => turn.label === label),
    { timeout: 10_000 },
  );

test("a piece is recorded with its label, owner and processor time", async () => {
  time.goesOn("org:org_1", "room_get");
  compute(BUSY_MS);
  const { owner, ms, cpu_ms } = await recorded("room_get");
  expect(owner).toBe("org:org_1");
  expect(ms).toBeGreaterThanOrEqual(BUSY_MS);
  expect(cpu_ms).toBeGreaterThanOrEqual(BUSY_MS);
});

test("a piece that waits for the kernel has elapsed time, and almost no processor time", async () => {
  time.goesOn("host", "db.commit");
  Bun.sleepSync(BUSY_MS);
  const { ms, cpu_ms } = await recorded("db.commit");
  expect(ms).toBeGreaterThanOrEqual(BUSY_MS);
  expect(cpu_ms).toBeLessThan(BUSY_MS / 2);
});

test("work without an owner is recorded as unnamed", async () => {
  await Bun.sleep(20);
  compute(BUSY_MS);
  const { cpu_ms } = await recorded("unnamed");
  expect(cpu_ms).toBeGreaterThanOrEqual(BUSY_MS / 2);
});

test("the pieces of a turn are not counted as work without an owner", async () => {
  for (let n = 0; n < 20; n++) {
    time.goesOn("org:org_1", "room_get");
    compute(4);
  }
  time.goesOn("org:org_1", "room_list");
  compute(BUSY_MS);
  await recorded("room_list");
  await Bun.sleep(50);
  expect(readFileSync(join(home, "turns"), "utf8")).not.toContain("unnamed");
});

test("without the variable nothing is recorded", () => {
  recordTurns(time, threadTime, {})();
  time.goesOn("host", "other");
  expect(readFileSync(join(home, "turns"), "utf8")).toBe("");
});
