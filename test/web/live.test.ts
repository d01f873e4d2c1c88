/** What is live on the hub's pages, in a real browser: many windows at once, and a deadlock on every tab of its room. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { realNode } from "../harness/real-terminal.ts";
import { Visitor } from "../harness/visitor.ts";

const READER = join(import.meta.dirname, "../harness/live-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`live pages: left out, because there is no ${CHROMIUM}`);

let seen: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  await using daemon = await TestDaemon.start();
  const owner = await Visitor.owner(daemon);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const told = JSON.stringify({ cookies: [...owner.cookies], key: daemon.apiKey });
  const argv = [realNode(), READER, CHROMIUM, daemon.url, pictures, told];
  const reader = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [status, printed, errors] = await Promise.all([reader.exited, reader.stdout.text(), reader.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  seen = JSON.parse(printed);
  console.log(
    `a seventh window loads in ${Math.round(seen.seventh_ms)} ms; a deadlock is on every tab after ${Math.round(seen.deadlock_ms)} ms`,
  );
}, 300_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("beside six windows that follow a room, a seventh loads in under a second", () => {
  expect(seen.seventh_ms).toBeLessThan(1000);
});

inBrowser("a deadlock is on every tab of its room within a second, as a sentence without ids", () => {
  expect(seen.deadlock_ms).toBeLessThan(1000);
  expect(seen.sentences).toHaveLength(8);
  for (const sentence of seen.sentences) {
    expect(sentence).toMatch(/waits for a reply from .*Neither can continue\./);
    expect(sentence).not.toContain("msg_");
  }
});

inBrowser("the room's overview and its timeline show who waits between calls", () => {
  expect(seen.waiting).toBe("2");
  expect(seen.waits_for.join()).toMatch(/a reply from bob.*a reply from alice/);
  expect(seen.lanes).toBe(2);
});

inBrowser("nothing is wrong with these pages", () => {
  expect(seen.noted).toEqual({ complaints: [], violations: [], strangers: [], overflows: [] });
});
