/** Every page of the list in a real browser, as an owner, a viewer and a signed-out visitor see it. */
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { ROUTES } from "../../daemon/edge/web/routes.ts";
import { Visitor } from "../harness/browser/visitor.ts";
import { realNode } from "../harness/clients/real-terminal.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { invite, People } from "../harness/people.ts";

const READER = join(import.meta.dirname, "../harness/browser/pages-reader.mjs");
const CHROMIUM = "/usr/bin/chromium";
const hasBrowser = existsSync(CHROMIUM);
if (!hasBrowser) console.log(`the account pages in a browser: left out, because there is no ${CHROMIUM}`);

/** Enables everything that pages can offer. No e-mail is sent. */
const OFFERS = {
  ROOMD_SIGNUP_MODE: "open",
  ROOMD_SMTP_HOST: "localhost",
  ROOMD_SMTP_PORT: "9",
  ROOMD_SMTP_TLS: "off",
  ROOMD_SMTP_FROM: "roomd@example.org",
};

let all: Json;
const seen = (): Json[] => all.seen;

beforeAll(async () => {
  if (!hasBrowser) return;
  await using daemon = await TestDaemon.start({ env: OFFERS });
  const people = await People.first(daemon);
  const { owner } = people;
  const viewer = await people.member("viewer", { email: "a-rather-long-address.of-somebody@department.example.org" });
  await people.member("admin");
  for (const name of ["laptop", "a name that has many words and goes on, as names of keys do"]) {
    await owner.api("POST", "/v1/orgs/self/keys", { name });
  }
  await owner.api("POST", "/v1/orgs/self/invitations", { role: "viewer", email: "bob@example.org" });
  await new Visitor(daemon).send("/signin", { email: "owner@example.org", password: "a long enough secret" });
  const token = (await invite(owner, "member")).split("/").at(-1) ?? "";
  const paths = Object.entries(ROUTES)
    // The hub has a separate test.
    .filter(([, { isSeen, isHub }]) => isSeen && !isHub)
    .map(([place]) => place.replace("{token}", token).replaceAll(/\{\w+\}/g, "none"));
  const visitors = Object.entries({ owner, viewer, nobody: new Visitor(daemon) }).map(
    ([name, { cookies, session }]) => ({
      name,
      cookies: Object.fromEntries(cookies),
      // A signed-in visitor is redirected from there to the hub.
      paths: paths.filter((path) => session === "" || path !== "/signin"),
    }),
  );
  const pictures = process.env.ROOMD_TEST_PICTURES ?? mkdtempSync(join(tmpdir(), "roomd-pictures-"));
  mkdirSync(pictures, { recursive: true });
  const reader = Bun.spawn([realNode(), READER, CHROMIUM, daemon.webUrl, pictures], {
    stdin: new Blob([JSON.stringify(visitors)]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, printed, errors] = await Promise.all([reader.exited, reader.stdout.text(), reader.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  all = JSON.parse(printed);
}, 900_000);

const inBrowser = test.skipIf(!hasBrowser);

inBrowser("each page has one heading and a title", () => {
  expect(seen().length).toBeGreaterThan(20);
  for (const { name, path, with_script } of seen()) {
    const { title, headings, language } = with_script;
    expect([name, path, headings.length, language]).toEqual([name, path, 1, "en"]);
    expect(title).toMatch(/ · roomd$/);
  }
});

inBrowser("each page is the same without script", () => {
  for (const { name, path, with_script, without_script } of seen()) {
    expect([name, path, without_script]).toEqual([name, path, with_script]);
  }
});

inBrowser("the tab key reaches every control", () => {
  expect(seen().filter(({ not_reached }) => not_reached.length > 0)).toEqual([]);
});

inBrowser(
  "no complaints by axe, the content security policy or the console, at 320 and 1280 pixels, light and dark",
  () => {
    expect(all.violations).toEqual([]);
    // A page that is refused is on the console as a failed load.
    expect(all.complaints.filter((each: string) => !/status of 40[0-9]/.test(each))).toEqual([]);
  },
);

inBrowser("no overflow, and no requests to other hosts", () => {
  expect([all.overflows, all.strangers]).toEqual([[], []]);
});
