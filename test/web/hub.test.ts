/** The hub in a real browser: every page in every look, the requests of its controls, live updates, and the effect of hostile text. */
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { beforeAll, expect, test } from "vitest";
import { Visitor } from "../harness/browser/visitor.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { freePort } from "../harness/free-port.ts";
import { HOSTILE, hostileCalls } from "../harness/hostile-room.ts";

const READER = join(import.meta.dirname, "../harness/browser/hub-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`the hub in a browser: left out, because there is no ${CHROMIUM}`);

/** The median of twenty, on loopback. */
const FIRST_PAINT_MS = 150;
/** Within five seconds; a timer of one second takes this much on a slow host. */
const IDLE_MS = 100;

/** A snapshot of the hostile room for each of its texts, one made of the other, as if there had been a sandbox. */
function insertSnapshots(daemon: TestDaemon): void {
  using rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  const idOf = (n: number) => `snap_01KG9YX9B2M6P1R4T7V0W3Y5Z${n}`;
  for (const [n, text] of HOSTILE.texts.entries()) {
    rows.run(
      `INSERT INTO snapshots (snapshot_id, room_uid, org_id, agent_id, sandbox_id, name, parent, mode, memory_mib, vcpu_count, disk_mib,
        template_id, settings, size_bytes, paused_ms, digest, created_at, created_by_type, created_by_id)
      SELECT ?, room_uid, org_id, 'worker', 'sbx_1', ?, ?, 'full', 512, 1, 8192, 'default', '{}', ?, ?, '', ?, 'key', 'kid_1'
      FROM rooms WHERE room_id = ?`,
      [
        idOf(n),
        text.slice(0, 128),
        n > 0 ? idOf(n - 1) : null,
        152_000_000 * n,
        900 * n,
        new Date().toISOString(),
        HOSTILE.room,
      ],
    );
  }
}

/** Checkpoints of the hostile room, as it is without sandboxes, and a room that is made of it. */
const FORK = `${HOSTILE.room}-try-1`;
const CHECKPOINTS = [
  ...HOSTILE.texts.map(
    (text) => ["POST", `/v1/rooms/${HOSTILE.room}/checkpoints`, { name: text.slice(0, 128) }] as const,
  ),
  ["POST", `/v1/rooms/${HOSTILE.room}/fork`, { room_id: FORK }] as const,
];

/** No server receives its deliveries. */
const WEBHOOK = [
  "POST",
  "/v1/orgs/self/webhooks",
  { url: "https://nobody.invalid/%3Cscript%3E?x=%22", types: ["room."] },
] as const;

/** Each page, by the name of its pictures. */
const PATHS = {
  home: "/",
  rooms: "/rooms",
  ended: "/rooms?state=destroyed",
  room: `/rooms/${HOSTILE.room}`,
  "room-none": "/rooms/never-was",
  timeline: `/rooms/${HOSTILE.room}/timeline?span=all`,
  "timeline-list": `/rooms/${HOSTILE.room}/timeline?as=list`,
  waits: `/rooms/${HOSTILE.room}/waits`,
  messages: `/rooms/${HOSTILE.room}/messages`,
  drive: `/rooms/${HOSTILE.room}/drive`,
  file: `/rooms/${HOSTILE.room}/drive?file=${encodeURIComponent("/javascript:alert(4)")}`,
  ports: `/rooms/${HOSTILE.room}/ports`,
  checkpoints: `/rooms/${HOSTILE.room}/checkpoints`,
  "checkpoint-gone": `/rooms/${HOSTILE.room}/checkpoints?checkpoint=chk_gone`,
  "checkpoints-none": `/rooms/${FORK}/checkpoints`,
  forked: `/rooms/${FORK}`,
  "forked-timeline": `/rooms/${FORK}/timeline?as=list`,
  agent: `/rooms/${HOSTILE.room}/agents/worker`,
  commands: `/rooms/${HOSTILE.room}/agents/worker/commands`,
  record: `/rooms/${HOSTILE.room}/agents/worker/record`,
  screen: `/rooms/${HOSTILE.room}/agents/worker/screen`,
  audit: "/audit",
  usage: "/usage",
  webhooks: "/webhooks",
  "hosts-alone": "/hosts",
};

let seen: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  // It is restarted at the same address.
  await using daemon = await TestDaemon.start({ env: { ROOMD_HTTP_LISTEN: `127.0.0.1:${await freePort()}` } });
  const owner = await Visitor.owner(daemon);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const input = {
    cookies: [...owner.cookies],
    key: daemon.apiKey,
    paths: PATHS,
    calls: [...hostileCalls(), ...CHECKPOINTS, WEBHOOK],
  };
  const argv = [realNode(), READER, CHROMIUM, daemon.webUrl, pictures, JSON.stringify(input)];
  const reader = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const does: Record<string, () => Promise<unknown>> = {
    stop: () => daemon.end("SIGKILL"),
    start: () => daemon.serve(),
    "sign out": () => owner.copy().send("/signout", {}),
    "take snapshots": async () => insertSnapshots(daemon),
  };
  const printed: string[] = [];
  for await (const line of createInterface({ input: Readable.fromWeb(reader.stdout as never) })) {
    printed.push(line);
    if (!does[line]) continue;
    await does[line]();
    reader.stdin.write("\n");
    reader.stdin.flush();
  }
  expect([await reader.exited, await reader.stderr.text()]).toEqual([0, ""]);
  seen = JSON.parse(printed.at(-1) ?? "");
  const { paint_ms: paint, room_seen_ms: room, idle_busy: idle, first_page: first } = seen;
  console.log(
    `first paint of the hub: ${paint.hub} ms, of the API's page ${paint.bare}; a new room is seen after ${Math.round(room)} ms; an idle tab takes ${Math.round(idle * 1000)} ms of 5 s; the first page loads ${first.bytes} bytes in ${first.files} files`,
  );
}, 900_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("the steps to a first sandbox are checked off as they happen", () => {
  const [at, connected, called] = seen.steps;
  // The operator's key is not that of a person.
  expect(at).toEqual(["Account"]);
  expect(connected).toContain("Connect your client");
  expect(called).toContain("First call");
});

inBrowser("no control on any page requests anything but reads", () => {
  expect(seen.pressed).toBeGreaterThan(10);
  expect(seen.unpressed).toEqual([]);
  expect(seen.asked).toEqual([]);
});

inBrowser("a forked room links to its checkpoint, and the checkpoint to rooms that use it", () => {
  const [checkpoint, fork] = seen.lineage;
  expect([checkpoint, fork]).toEqual([expect.stringMatching(/^chk_/), FORK]);
  expect(seen.lines).toEqual([
    `roomd room fork ${HOSTILE.room} ${HOSTILE.room}-try-2 --checkpoint ${checkpoint}`,
    `roomd room restore ${HOSTILE.room} ${checkpoint}`,
  ]);
});

inBrowser("every page can be reached with the keyboard", () => {
  expect(seen.keys).toBeGreaterThan(8);
});

inBrowser("events are shown live in a visible tab, and after a reconnect", () => {
  expect(seen.room_seen_ms).toBeGreaterThan(0);
  expect(seen.hidden).toEqual({ before: 1, open: 0, begun: 0, rooms: 0, after: 1 });
  // A laptop that slept shows its former content with its age, and reconnects automatically.
  expect(seen.shown_asleep).toBe(1);
});

inBrowser("the first page loads few bytes, all of them counted", () => {
  expect(seen.first_page.files).toBeGreaterThan(2);
  expect(seen.first_page.bytes).toBeLessThanOrEqual(30_000);
});

inBrowser("the first paint is fast, and an idle tab uses almost no CPU", () => {
  // Painted by software on two shared processors, even an empty page is late: then the hub is compared with that page.
  expect(seen.paint_ms.hub).toBeLessThan(Math.max(FIRST_PAINT_MS, 3 * seen.paint_ms.bare));
  expect(seen.idle_busy * 1000).toBeLessThanOrEqual(IDLE_MS);
});

inBrowser("an idle tab polls only waits, and an ended session is reported next to the existing content", () => {
  expect(seen.idle_asked).toBe(0);
  expect(seen.idle_glances).toBeLessThanOrEqual(1);
  expect(seen.shown_after).toBe(1);
});

inBrowser("hostile text executes nothing, and no complaints by axe or the content security policy", () => {
  expect(seen.dialogs).toEqual([]);
  expect([seen.violations, seen.overflows, seen.strangers]).toEqual([[], [], []]);
  // A failed load is on the console: of a room that never was, of a service that does not answer, of one without a template.
  const expected =
    /status of 40[14]|status of 503 .*\/health\)|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE|ERR_INTERNET_DISCONNECTED/;
  expect(seen.complaints.filter((each: string) => !expected.test(each))).toEqual([]);
});
