/** The page of /docs in a real browser: search, copying, light and dark, on a narrow screen, and without its script. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { OPERATIONS } from "../api/requests.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";

const READER = join(import.meta.dirname, "../harness/browser/docs-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`/docs in a browser: left out, because there is no ${CHROMIUM}`);

let seen: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  await using daemon = await TestDaemon.start();
  const reader = Bun.spawn([realNode(), READER, CHROMIUM, `${daemon.url}/docs`], { stdout: "pipe", stderr: "pipe" });
  const [status, printed, errors] = await Promise.all([reader.exited, reader.stdout.text(), reader.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  seen = JSON.parse(printed);
}, 120_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("lists every operation, and finds it by words and fields, and errors by code", () => {
  expect(seen.all).toEqual(expect.arrayContaining(OPERATIONS.map(({ name }) => `#${name}`)));
  expect(seen.command).toContain("#sandbox_exec");
  expect(seen.command.length).toBeLessThan(seen.all.length / 4);
  expect(seen.field).toEqual(["#egress_set"]);
  expect(seen.error).toEqual(["#error-guest_cid_in_use"]);
  expect([seen.nothing, seen.says_nothing]).toEqual([[], true]);
});

inBrowser("can be searched with the keyboard", () => {
  expect(seen.focused).toBe(true);
  expect(seen.hash).toBe("#sandbox_exec");
  expect(seen.after_escape).toBe(seen.all.length);
});

inBrowser("copies an example, also without TLS", () => {
  expect(seen.example).toMatch(/^curl -X POST "\$ROOMD_URL\/v1\/rooms"/);
  expect(seen.pasted).toBe(seen.example);
  expect(seen.left_behind).toBe(0);
});

inBrowser("follows the system's color scheme, or the stored choice", () => {
  expect(seen.dark).not.toBe(seen.light);
  expect([seen.chosen_dark, seen.still_dark]).toEqual([seen.dark, seen.dark]);
});

inBrowser("fits 320 pixels, where the list opens for a search and closes after it", () => {
  expect(seen.overflow).toBe(0);
  expect(seen.closed).toBe(0);
  expect(seen.narrow[0]).toBe("#sandbox_exec");
  expect([seen.narrow_hash, seen.closed_again]).toEqual(["#sandbox_exec", 0]);
});

inBrowser("is readable without its script, and satisfies its content security policy", () => {
  expect(seen.without_script).toEqual({ heading: true, listed: true, controls: 0 });
  expect(seen.complaints).toEqual([]);
});
