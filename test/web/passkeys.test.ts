/** Passkeys in a real browser, by keyboard alone: a second person joins by one, signs in without a name, and proves by it. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { beforeAll, expect, test } from "vitest";
import { ERRORS } from "../../shared/api/errors.ts";
import { bearer } from "../api/calls.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { staleProofs } from "../harness/people.ts";

const READER = join(import.meta.dirname, "../harness/browser/passkey-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`passkeys in a browser: left out, because there is no ${CHROMIUM}`);

let seen: Json;
let url: string;
let me: Json;
beforeAll(async () => {
  if (!hasBrowser) return;
  await using daemon = await TestDaemon.start();
  url = daemon.url.replace("127.0.0.1", "localhost");
  const { stdout } = await daemon.cli(["user", "link", "--json"]);
  const { pathname, hash } = new URL(JSON.parse(stdout).url);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const argv = [realNode(), READER, CHROMIUM, url, url + pathname + hash, pictures];
  const reader = Bun.spawn(argv, { stdin: "pipe", stdout: "pipe", stderr: "pipe" });
  const errors = reader.stderr.text();
  const lines = createInterface({ input: Readable.fromWeb(reader.stdout as never) });
  let last = "";
  for await (const line of lines) {
    last = line;
    if (line !== "stale") continue;
    staleProofs(daemon);
    reader.stdin.write("\n");
    reader.stdin.flush();
  }
  expect([await reader.exited, await errors]).toEqual([0, ""]);
  seen = JSON.parse(last);
  const key = /ROOMD_API_KEY=(\S+)/.exec(seen.bobs_key)?.[1] ?? "";
  me = (await daemon.api("GET", "/v1/me", undefined, bearer(key))).body;
}, 600_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("the first owner and an invited person join with a passkey, without any password", () => {
  expect([seen.ada, seen.bob]).toEqual([`${url}/`, `${url}/`]);
  expect(me).toMatchObject({ name: "bob's" });
});

inBrowser("signing in requires no name, and a proof is given with the passkey", () => {
  expect(seen.again).toBe(`${url}/`);
  expect(seen.added).toContain("Passkey added.");
  expect(seen.stick).toEqual([["localhost", true]]);
});

inBrowser("errors are explained in text", () => {
  expect(seen.same).toBe("This device already has a passkey for this account.");
  expect(seen.first).toContain("Passkey removed.");
  expect(seen.last).toContain(ERRORS.last_way_in.hint);
  expect(seen.address).toBe(`${url}/signin`);
});

inBrowser("no overflow at 320 pixels, and no complaints by axe or the content security policy", () => {
  expect(seen.overflows).toEqual([]);
  expect(seen.violations).toEqual([]);
  // Refused requests appear on the console as a failed load.
  expect(seen.complaints.filter((each: string) => !/status of (403|409)/.test(each))).toEqual([]);
});
