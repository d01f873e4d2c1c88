/** The pages of a service of two hosts in a real browser: the hosts' states, the rooms' hosts, and the display of unreachable ones. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { beforeAll, expect, test } from "vitest";
import { Visitor } from "../harness/browser/visitor.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import type { Json } from "../harness/daemon.ts";
import { HOSTILE } from "../harness/hostile-room.ts";
import { TestHosts } from "../harness/hosts/hosts.ts";

const READER = join(import.meta.dirname, "../harness/browser/hosts-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM) && process.env.ROOMD_TEST_LONG === "1";
if (!hasBrowser) console.log(`hosts in a browser: left out, because it requires ${CHROMIUM} and ROOMD_TEST_LONG=1`);

let seen: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  await using hosts = await TestHosts.start(1, { env: { ROOMD_CLUSTER_LABELS: "zone=a" } });
  const other = await hosts.add({ env: { ROOMD_CLUSTER_LABELS: "zone=b" } });
  await hosts.knowEachOther();
  const owner = await Visitor.owner(hosts.first);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const input = {
    cookies: [...owner.cookies],
    key: hosts.first.apiKey,
    ...{ here: "host-1", other: "host-2", hostile: HOSTILE.texts },
  };
  const argv = [realNode(), READER, CHROMIUM, hosts.first.url, pictures, JSON.stringify(input)];
  const reader = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const does: Record<string, () => Promise<unknown>> = { stop: () => other.end("SIGTERM") };
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
}, 300_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("with several hosts there is a page of them, with the used share of their resources", () => {
  expect(seen.rail).toContain("Hosts");
  expect(seen.well.summary).toBe("2 hosts: 2 active");
  expect(seen.well.bars).toBe(4);
});

inBrowser("data reported by a host are shown as text", () => {
  expect(seen.hostile).toContain("javascript:alert(1)");
});

inBrowser("each state is shown with a remedy", () => {
  for (const line of [
    "roomd cluster remove host-silent --force",
    "roomd doctor",
    "roomd cluster evacuate host-draining",
    "roomd cluster drain host-empty --undo",
    "roomd cluster evacuate host-older",
    "start the service on it",
    "roomd template build default",
    "Removed from the service: host-gone.",
  ])
    expect(seen.states).toContain(line);
});

inBrowser("while the database is unavailable, the page shows since when, and which functions remain", () => {
  expect(seen.stale).toMatch(/\bhost-1\b.*\b1 min\b/);
  expect(seen.stale).toContain("Rooms and all work in them continue");
});

inBrowser("rooms show their host", () => {
  expect(seen.filtered).toEqual(["far"]);
  expect(seen.before).toContain("on host-2");
});

inBrowser("rooms of an unresponsive host show that, with a remedy", () => {
  expect(seen.silent_room).toContain("host-2");
  expect(seen.silent_room).toContain("Hosts");
  expect(seen.silent).toContain("roomd cluster remove host-2 --force");
  expect(seen.silent).toContain("far");
  expect(seen.troubles).toBe(0);
});

inBrowser("only reads are requested, and no complaints by axe or the content security policy", () => {
  expect([seen.asked, seen.violations, seen.overflows, seen.strangers]).toEqual([[], [], [], []]);
  const expected = /status of (?:403|503)/;
  expect(seen.complaints.filter((each: string) => !expected.test(each))).toEqual([]);
});
