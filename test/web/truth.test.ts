/** Correctness of the pages, in a real browser: order, failures, deleted things; also layout stability and colours. */
import { beforeAll, expect, test } from "vitest";
import { CHROMIUM, hasBrowser, seenBy } from "../harness/browser/seen-by.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { freePort } from "../harness/free-port.ts";

/** The limit that browsers rate as good. */
const MAX_SHIFT = 0.1;
if (!hasBrowser) console.log(`contents of pages: left out, because there is no ${CHROMIUM}`);

let seen: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  // It is restarted at the same address.
  await using daemon = await TestDaemon.start({ env: { ROOMD_HTTP_LISTEN: `127.0.0.1:${await freePort()}` } });
  seen = await seenBy(
    "truth-reader.mjs",
    daemon,
    { key: daemon.apiKey, url: daemon.webUrl },
    {
      "make a link": async () => {
        const { stdout } = await daemon.cli(["user", "link", "owner@example.org", "--json"]);
        return JSON.parse(stdout).url;
      },
      stop: () => daemon.end("SIGTERM"),
      start: () => daemon.serve(),
    },
  );
}, 300_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("a valid link that is pasted into the tab of an invalid one opens its page", () => {
  expect(seen.pasted).not.toContain("not valid");
});

inBrowser("an unknown room or agent has no tabs, and an agent's page follows its arrival", () => {
  expect([seen.tabs_of_nothing, seen.tabs_of_nobody]).toEqual([0, 0]);
});

inBrowser("a drive that was deleted with its room is shown as that", () => {
  expect(seen.drive).toContain("Its files cannot be shown");
});

inBrowser("destroyed rooms are listed newest first, without columns that no longer apply", () => {
  expect(seen.ended.rows).toEqual(["third", "second", "first"]);
  expect(seen.ended.columns).not.toContain("Running");
});

inBrowser(
  "Home's failures are those of agents and programs, merged if equal, without probes and intended waits",
  () => {
    expect(seen.failures).toEqual(["room.created"]);
    expect(seen.outcomes).toEqual([expect.stringMatching(/^\w+ 3 times$/)]);
  },
);

inBrowser("a person is named in the audit", () => {
  expect(seen.people.length).toBeGreaterThan(0);
  expect(seen.people).not.toContain("a person");
});

inBrowser("the audit's times are in the order of its rows", () => {
  expect(seen.times.length).toBeGreaterThan(8);
  expect(seen.times).toEqual(seen.times.toSorted((one: number, other: number) => other - one));
});

inBrowser("the layout does not shift while a page loads", () => {
  for (const [path, shift] of Object.entries(seen.shifts)) expect([path, shift]).toEqual([path, expect.any(Number)]);
  const moved = Object.entries<number>(seen.shifts).filter(([, shift]) => shift > MAX_SHIFT);
  expect(moved).toEqual([]);
});

inBrowser("account, color scheme and sign-out are visible on long pages", () => {
  for (const foot of Object.values(seen.foot)) expect(foot).toEqual([true, true]);
});

inBrowser("the chosen color scheme applies to every page", () => {
  const [, background] = seen.dark["/rooms"];
  for (const [path, [isInPage, colour]] of Object.entries<[boolean, string]>(seen.dark)) {
    // The API's page is the same for all, and its script sets them before it is drawn.
    if (path !== "/docs") expect([path, isInPage, colour]).toEqual([path, true, background]);
  }
  expect(seen.docs).toEqual(["dark", "Colours: dark"]);
  expect(seen.system_again).toBe("system");
});

inBrowser("a refused form keeps its input, and shows the error at the field", () => {
  expect(seen.form).toMatchObject({ name: "name", value: "k".repeat(129), has_focus: true });
  expect(seen.form.said).toMatch(/^Name .*\b128\b/);
});

inBrowser("while the service restarts no page reports an ended session", () => {
  expect(seen.badges).not.toContainEqual(expect.stringContaining("ended"));
});

inBrowser("no complaints on these pages", () => {
  expect([seen.violations, seen.overflows, seen.strangers]).toEqual([[], [], []]);
});
