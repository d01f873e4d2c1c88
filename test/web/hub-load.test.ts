/**
 * The hub under load, in a real browser: 10,000 records scrolled, navigation in a timeline of 40,000 events, and 20,000 events a minute for
 * minutes. Delays of the page are measured as the processor time of its main thread's tasks.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { asking } from "../bench/load/other-organization.ts";
import { Visitor } from "../harness/browser/visitor.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { LONG, until } from "../harness/guests.ts";

const READER = join(import.meta.dirname, "../harness/browser/load-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const EVENTS = 40_000;
const PER_MINUTE = 20_000;
const MINUTES = Number(process.env.ROOMD_TEST_MINUTES ?? 10);
const AGENTS = ["planner", "worker", "reviewer", "tester"];
const LANES = 64;
/** A longer task is perceptible. */
const LONG_TASK_MS = 50;

const hasBrowser = existsSync(CHROMIUM);
const reason = hasBrowser ? (LONG ? null : "only ROOMD_TEST_LONG=1 runs it") : `there is no ${CHROMIUM}`;
if (reason) console.log(`the hub under load: left out, because ${reason}`);

let seen: Json;
beforeAll(
  async () => {
    if (reason) return;
    await using daemon = await TestDaemon.start();
    const owner = await Visitor.owner(daemon);
    await fill(daemon);
    const input = JSON.stringify({ cookies: [...owner.cookies], room: "full", events: EVENTS, minutes: MINUTES });
    const end = await asking(
      "event-source.ts",
      String(PER_MINUTE / 60),
      `${daemon.url}/v1/rooms/busy/messages`,
      daemon.apiKey,
    );
    const reader = Bun.spawn([realNode(), READER, CHROMIUM, daemon.url, input], { stdout: "pipe", stderr: "pipe" });
    const [printed, complaints] = await Promise.all([reader.stdout.text(), reader.stderr.text()]);
    const sent = await end();
    expect([await reader.exited, complaints]).toEqual([0, ""]);
    seen = JSON.parse(printed.trim().split("\n").at(-1) ?? "");
    seen.sent = sent;
    console.log(
      `longest task, ms of the processor: scrolling ${seen.scrolled.longest_ms}, timeline ${seen.timeline.longest_ms}, live ${seen.live.longest_ms}; heap of the live page ${seen.live.heap_mib.join(", ")} MiB; ${sent} events were sent`,
    );
  },
  (MINUTES + 10) * 60_000,
);

/** A room with `EVENTS` events, and one that is idle at first. */
async function fill(daemon: TestDaemon): Promise<void> {
  for (const room of ["full", "busy"]) {
    await daemon.room(room);
    for (const agent of AGENTS) await daemon.ok("GET", `/v1/rooms/${room}/messages?agent_id=${agent}`);
  }
  let next = 0;
  const lane = async () => {
    for (let n = next++; n < EVENTS; n = next++) {
      const source = AGENTS[n % AGENTS.length];
      await daemon.ok("POST", "/v1/rooms/full/messages", { source, topic: "steps", payload: { n } });
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await until("all events are in the audit log", async () => {
    const { items } = await daemon.ok("GET", "/v1/rooms/full/audit?limit=1");
    return items[0].seq >= EVENTS;
  });
}

const underLoad = test.skipIf(reason !== null);

underLoad("10,000 records can be scrolled, with only the visible ones in the DOM", () => {
  expect(seen.scrolled.records).toBeGreaterThanOrEqual(10_000);
  expect(seen.scrolled.rows).toBeLessThan(200);
  expect(seen.scrolled.longest_ms).toBeLessThan(LONG_TASK_MS);
});

underLoad("a timeline of 40,000 events is drawn, moved and zoomed with few elements", () => {
  expect(seen.timeline.items).toBeGreaterThanOrEqual(EVENTS);
  expect(seen.timeline.elements).toBeLessThan(6000);
  expect(seen.timeline.longest_ms).toBeLessThan(LONG_TASK_MS);
});

underLoad("20,000 events a minute neither block the page nor make it grow", () => {
  expect(seen.sent).toBeGreaterThan(PER_MINUTE * MINUTES * 0.9);
  expect(seen.live.longest_ms).toBeLessThan(LONG_TASK_MS);
  // The page has all that it keeps when the first is taken.
  const [first, ...later] = seen.live.heap_mib as number[];
  expect(Math.max(...later) - (first ?? 0)).toBeLessThan(20);
  expect(seen.live.behind_ms).toBeLessThan(2000);
  expect(seen.complaints).toEqual([]);
});
