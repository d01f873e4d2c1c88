/** The hub in a real browser while things change around it: its display of late, deleted, paused and broken things, and its requests. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { Visitor } from "../harness/browser/visitor.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";

const READER = join(import.meta.dirname, "../harness/browser/hub-changes-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`the hub while things change: left out, because there is no ${CHROMIUM}`);

let seen: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  await using daemon = await TestDaemon.start({
    env: { ROOMD_OTEL_TRACE_URL: "https://traces.example.com/t/{trace_id}" },
  });
  const owner = await Visitor.owner(daemon);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const input = JSON.stringify({ cookies: [...owner.cookies], key: daemon.apiKey });
  const argv = [realNode(), READER, CHROMIUM, daemon.url, pictures, input];
  const reader = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [status, printed, errors] = await Promise.all([reader.exited, reader.stdout.text(), reader.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  seen = JSON.parse(printed);
}, 900_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("a page whose script is gone reports that, and is reloaded", () => {
  expect(seen.lost_and_found).toBe("Waits");
});

inBrowser("stale data are marked with their age, whether the stream is open or not", () => {
  expect(seen.late_look).toContain("wait");
});

inBrowser("paused output shows the amount of new output until resumed", () => {
  expect(seen.paused_buttons).toBe(0);
});

inBrowser("a port's traffic is polled by a visible tab only", () => {
  expect(seen.ports_asked_while_hidden).toBe(0);
});

inBrowser("a waiting agent is shown while its call is held, and a hidden tab does not poll", () => {
  expect(seen.waits).toEqual({ unheld: [0, 0, 0, 0], asked_while_hidden: 0 });
});

inBrowser("reads by others cause no request, nor do changes known from events", () => {
  // The waits are requested in that time, once.
  const { agents, ...others } = seen.read_by_others;
  expect(agents).toBeLessThan(3);
  expect(others).toEqual({ drive: 0, home: 0, sandboxes: 0 });
});

inBrowser("a destroyed room is shown from the audit, even if another has its name by now", () => {
  const { heading, labels, events, lines, items, pauses, troubles } = seen.ended;
  expect([heading, labels]).toEqual(["twice", ["life=first"]]);
  expect(events).toEqual(["room.destroyed", "message.sent", "room.created"]);
  expect([lines, items, pauses, troubles]).toEqual([0, "3", 0, 0]);
});

inBrowser("a record links to its own room, even if another has its name by now", () => {
  expect(seen.led).toEqual(["life=first", "", "life=second", expect.stringMatching(/^\?uid=rom_/)]);
});

inBrowser("rooms beyond the first page can be searched, and going back restores the page", () => {
  const { at_first, at_last, back, searched, scrolled_px } = seen.rooms;
  expect(at_first).toBe(100);
  expect(at_last).toBeGreaterThan(130);
  expect([back, searched, scrolled_px]).toEqual([at_last, true, 0]);
});

inBrowser("a short chain is verified when the page opens, a long one is not", () => {
  expect([seen.chain_at, seen.verified]).toEqual([1, 1]);
});

inBrowser("the audit works by keyboard: only the chosen filter is removed, and the focus stays", () => {
  const { after_one, after_all, ...others } = seen.keyboard;
  expect(after_one).toMatch(/\boutcome success$/);
  expect(after_all).toMatch(/\bevent$/);
  expect(others).toEqual({ chips: 2, beneath: [], after_record: true });
});

inBrowser("a screen is shown and refreshed while visible, and without one a line explains how to get it", () => {
  expect(seen.screen_lines).toBe(0);
});

inBrowser("messages after a transient error are loaded automatically, without being reported as missing", () => {
  expect(seen.refused_mail).toEqual({ empty: 0, buttons: 1 });
});

inBrowser("the link of an old message leads to it, and a missing one is reported", () => {
  expect(seen.old_message).toBe("false");
  expect(seen.gone_links).toBe("/audit?room=letters&event=barrier.");
});

inBrowser("a long thread requests receipts of visible messages only, and not again for messages of others", () => {
  const { first, again } = seen.receipts;
  expect([first > 0, first < 30, again]).toEqual([true, true, 0]);
});

inBrowser("the drive's usage is current after a write, and on request", () => {
  expect(seen.drive_used).toMatch(/^4\.7 GiB of /);
});

inBrowser("a selected item of the timeline links to its trace, without a referrer", () => {
  expect(seen.trace).toEqual({
    words: "trace 4bf92f35",
    href: "https://traces.example.com/t/4bf92f3577b34da6a3ce929d0e0e4736",
    rel: "noreferrer noopener",
  });
});

inBrowser("a drag along the timeline changes the URL once at its end", () => {
  // Of 30 steps: more than once if the pointer has rested on its way, as a busy machine lets it.
  expect(seen.writes_of_drag).toBeGreaterThan(0);
  expect(seen.writes_of_drag).toBeLessThan(16);
});

inBrowser("a time is entered in the zone of the axis", () => {
  expect(seen.jump.edge).toMatch(/^\d\d:\d\d:\d\d$/);
  expect(seen.jump.field).toBe(seen.jump.edge);
});

inBrowser("the timeline's list has all items in few rows, and new ones do not move them", () => {
  expect(seen.list.items).toBeGreaterThanOrEqual(1100);
  expect(seen.list.rows).toBeLessThan(100);
  expect([seen.list.moved, seen.list.focused]).toEqual([0, "3"]);
});

inBrowser("only reads are requested, and no complaints by axe or the content security policy", () => {
  expect([seen.asked, seen.violations, seen.overflows, seen.strangers]).toEqual([[], [], [], []]);
  // Failed requests and missing resources appear on the console as a failed load.
  const expected =
    /status of (?:404|503)|screen\/ws|Failed when connecting|ERR_INTERNET_DISCONNECTED|ERR_INCOMPLETE_CHUNKED_ENCODING/;
  expect(seen.complaints.filter((each: string) => !expected.test(each))).toEqual([]);
});
