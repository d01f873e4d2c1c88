/** From the setup link to a working program, authorized with a key and by a person, and to the revocation of both: by keyboard alone. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { freePort } from "../harness/free-port.ts";

const READER = join(import.meta.dirname, "../harness/browser/walk-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser)
  console.log(`the complete account walkthrough in a browser: left out, because there is no ${CHROMIUM}`);

const ROOM = "walk";
let seen: Json;

beforeAll(async () => {
  if (!hasBrowser) return;
  // Passkeys are of a name, not of an address.
  const port = await freePort();
  const env = { ROOMD_HTTP_LISTEN: `127.0.0.1:${port}`, ROOMD_HTTP_BASE_URL: `http://localhost:${port}` };
  await using daemon = await TestDaemon.start({ env });
  await daemon.room(ROOM);
  const { url: link } = JSON.parse((await daemon.cli(["user", "link", "--json"])).stdout);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const argv = [realNode(), READER, CHROMIUM, daemon.url, link, pictures, ROOM];
  const reader = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [status, printed, errors] = await Promise.all([reader.exited, reader.stdout.text(), reader.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  seen = JSON.parse(printed);
}, 600_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("a second person joins with the invitation and a passkey, and the key is shown once", () => {
  expect(new URL(seen.person).pathname).toBe("/");
  expect(seen.key_shown_again).toBe(false);
});

inBrowser("the official client is authorized by key and by the person, and both are listed", () => {
  expect(seen.tools[0]).toBeGreaterThan(10);
  expect(seen.tools[1]).toBe(seen.tools[0]);
  expect(seen.keys).toEqual([expect.stringContaining("walker's")]);
  expect(seen.applications).toEqual([expect.stringContaining("Walker")]);
});

inBrowser("key and application are revoked, and their waiting calls end within half a second", () => {
  for (const { by, after_ms, said } of seen.cut) {
    expect([by, after_ms < 500, said]).toEqual([by, true, expect.stringMatching(/401|invalid|Unauthorized|expired/i)]);
  }
  expect(seen.left.join()).not.toContain("walker's");
});

inBrowser("no complaints by axe or the content security policy, and no overflow", () => {
  expect([seen.violations, seen.overflows]).toEqual([[], []]);
  expect(seen.complaints).toEqual([]);
});
