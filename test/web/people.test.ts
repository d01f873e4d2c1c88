/** The pages of accounts in a real browser: by keyboard, and without script; with nothing that axe or the policy complains of. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { ERRORS } from "../../shared/api/errors.ts";
import { bearer } from "../api/calls.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";

const READER = join(import.meta.dirname, "../harness/browser/people-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`the account's pages in a browser: left out, because there is no ${CHROMIUM}`);

let seen: Json;
let url: string;
const names: string[] = [];
beforeAll(async () => {
  if (!hasBrowser) return;
  await using daemon = await TestDaemon.start();
  url = daemon.webUrl;
  const { stdout } = await daemon.cli(["user", "link", "--json"]);
  // The command line prints the configured port, which is 0 (any).
  const { pathname, hash } = new URL(JSON.parse(stdout).url);
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const argv = [realNode(), READER, CHROMIUM, url, url + pathname + hash, pictures];
  const reader = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [status, printed, errors] = await Promise.all([reader.exited, reader.stdout.text(), reader.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  seen = JSON.parse(printed);
  for (const text of [seen.exports, seen.bobs_key]) {
    const key = /ROOMD_API_KEY=(\S+)/.exec(text)?.[1] ?? "";
    names.push((await daemon.api("GET", "/v1/me", undefined, bearer(key))).body.name);
  }
}, 600_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("the first owner joins with the keyboard, and the link's token is removed from the URL", () => {
  expect([seen.address, seen.inside]).toEqual([`${url}/setup`, `${url}/`]);
});

inBrowser("a key is shown once, with two lines to copy, and works", () => {
  expect(seen.exports).toMatch(/^export ROOMD_URL=\S+\nexport ROOMD_API_KEY=key-\w{43}$/);
  expect(seen.exports).toContain(`export ROOMD_URL=${url}\n`);
  expect(seen.copied).toBe(seen.exports);
  expect(names).toEqual(["laptop", "bob's"]);
});

inBrowser("everything works without script", () => {
  expect([seen.bob, seen.signed_out, seen.outside]).toEqual([`${url}/`, `${url}/signin`, `${url}/signin`]);
  expect(seen.without_script).toBe(0);
});

inBrowser("refusals are explained in text", () => {
  expect(seen.refused).toContain(ERRORS.sign_in_failed.title);
});

inBrowser(
  "no overflow at 320 pixels, no requests to other hosts, no complaints by axe or the content security policy",
  () => {
    expect(seen.overflows).toEqual([]);
  },
);

inBrowser("in the member list an address, a time, and a role with its button take one line each", () => {
  expect(seen.member_lines.length).toBeGreaterThanOrEqual(5);
  expect(new Set(seen.member_lines)).toEqual(new Set([1]));
  expect(seen.strangers).toEqual([]);
  expect(seen.violations).toEqual([]);
  // The sign-in page's answer to a wrong password appears on the console as a failed load.
  expect(seen.complaints.filter((each: string) => !/status of 401/.test(each))).toEqual([]);
});
