/** The hub in a real browser while things change around it: its display of late, deleted, paused and broken things, and its requests. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { realNode } from "../harness/real-terminal.ts";
import { Visitor } from "../harness/visitor.ts";

const READER = join(import.meta.dirname, "../harness/hub-changes-reader.mjs");
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
  const told = JSON.stringify({ cookies: [...owner.cookies], key: daemon.apiKey });
  const argv = [realNode(), READER, CHROMIUM, daemon.url, pictures, told];
  const reader = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [status, printed, errors] = await Promise.all([reader.exited, reader.stdout.text(), reader.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  seen = JSON.parse(printed);
}, 900_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("a page whose program is gone says so, and is loaded anew", () => {
  expect(seen.lost_and_found).toBe("Waits");
});

inBrowser("what is behind says how far, whether the stream is open or not", () => {
  expect(seen.late_look).toContain("wait");
});

inBrowser("output that one has stopped following says how much is new, until one goes on", () => {
  expect(seen.paused_buttons).toBe(0);
});

inBrowser("a port's traffic is asked for by a tab that is seen, and by no other", () => {
  expect(seen.ports_asked_while_hidden).toBe(0);
});

inBrowser("who waits is seen while the call is held, and after it no more, and a hidden tab does not ask", () => {
  expect(seen.waits).toEqual({ unheld: [0, 0, 0, 0], asked_while_hidden: 0 });
});

inBrowser("what others only read is not asked for again, and nothing that events tell", () => {
  // The waits are requested in that time, once.
  const { agents, ...others } = seen.read_by_others;
  expect(agents).toBeLessThan(3);
  expect(others).toEqual({ drive: 0, home: 0, sandboxes: 0 });
});

inBrowser("a room that has ended is shown from the audit, also where another has its name by now", () => {
  const { heading, labels, events, lines, items, pauses, troubles } = seen.ended;
  expect([heading, labels]).toEqual(["twice", ["life=first"]]);
  expect(events).toEqual(["room.destroyed", "message.sent", "room.created"]);
  expect([lines, items, pauses, troubles]).toEqual([0, "3", 0, 0]);
});

inBrowser("a record leads to its own room, also where another has its name by now", () => {
  expect(seen.led).toEqual(["life=first", "", "life=second", expect.stringMatching(/^\?uid=rom_/)]);
});

inBrowser("rooms are searched beyond those that are shown, and who comes back finds the page as it was left", () => {
  const { at_first, at_last, back, searched, scrolled_px } = seen.rooms;
  expect(at_first).toBe(100);
  expect(at_last).toBeGreaterThan(130);
  expect([back, searched, scrolled_px]).toEqual([at_last, true, 0]);
});

inBrowser("the chain is verified as the page is opened, and a long one is not", () => {
  expect([seen.chain_at, seen.verified]).toEqual([1, 1]);
});

inBrowser("the audit is used by keyboard: no filter goes that was not meant, and the focus stays where one is", () => {
  const { after_one, after_all, ...others } = seen.keyboard;
  expect(after_one).toBe("Take away the filter outcome success");
  expect(after_all).toBe("Value of event");
  expect(others).toEqual({ chips: 2, beneath: [], after_record: true });
});

inBrowser("a screen is seen, taken again while one looks, and where there is none a line says what makes one", () => {
  expect(seen.screen_lines).toBe(0);
});

inBrowser(
  "messages that are refused for a moment come by themselves, and until then none are said not to be there",
  () => {
    expect(seen.refused_mail).toEqual({ empty: 0, buttons: 1 });
  },
);

inBrowser("the link of a message leads to it, however old it is, and what is gone is said to be", () => {
  expect(seen.old_message).toBe("false");
  expect(seen.gone_links).toBe("/audit?room=letters&event=barrier.");
});

inBrowser("a long thread asks for the receipts of what is in view, and not again for what others send", () => {
  const { first, again } = seen.receipts;
  expect([first > 0, first < 30, again]).toEqual([true, true, 0]);
});

inBrowser("what a drive takes is up to date after a write, and where one asks again", () => {
  expect(seen.drive_used).toMatch(/^4\.7 GiB of /);
});

inBrowser("what is chosen in the timeline leads to its trace, which is told nothing of where one came from", () => {
  expect(seen.trace).toEqual({
    words: "trace 4bf92f35",
    href: "https://traces.example.com/t/4bf92f3577b34da6a3ce929d0e0e4736",
    rel: "noreferrer noopener",
  });
});

inBrowser("a drag along the timeline is in the address once it is over, not with every step", () => {
  // Of 30 steps: more than once if the pointer has rested on its way, as a busy machine lets it.
  expect(seen.writes_of_drag).toBeGreaterThan(0);
  expect(seen.writes_of_drag).toBeLessThan(16);
});

inBrowser("a time is jumped to in the zone that the axis has", () => {
  expect(seen.jump.edge).toMatch(/^\d\d:\d\d:\d\d$/);
  expect(seen.jump.field).toBe(seen.jump.edge);
});

inBrowser("the timeline's list has all items and few rows, and what comes does not move them", () => {
  expect(seen.list.items).toBeGreaterThanOrEqual(1100);
  expect(seen.list.rows).toBeLessThan(100);
  expect([seen.list.moved, seen.list.focused]).toEqual([0, "3"]);
});

inBrowser("nothing is asked but reading, and neither axe nor the policy has a complaint in any look", () => {
  expect([seen.asked, seen.violations, seen.overflows, seen.strangers]).toEqual([[], [], [], []]);
  // Failed requests and missing resources appear on the console as a failed load.
  const expected =
    /status of (?:404|503)|screen\/ws|Failed when connecting|ERR_INTERNET_DISCONNECTED|ERR_INCOMPLETE_CHUNKED_ENCODING/;
  expect(seen.complaints.filter((each: string) => !expected.test(each))).toEqual([]);
});
