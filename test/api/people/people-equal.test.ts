/**
 * Outsiders cannot find out whether an address has an account: the page, and the database statements before the response, are the same for
 * a registered and an unknown address.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LETTER } from "../../../daemon/edge/web/handlers/sign-up.ts";
import { MailServer } from "../../fixtures/mail-server.ts";
import { type PageSeen, Visitor } from "../../harness/browser/visitor.ts";
import type { TestDaemon } from "../../harness/daemon.ts";
import { startTelling, statementsOf } from "../../harness/event-loop/asked-statements.ts";
import { until } from "../../harness/guests.ts";
import { invite, PASSWORD, People } from "../../harness/people.ts";

const isWorkTold = process.env.ROOMD_TEST_CLUSTER !== "1";
/** Registered users: with a verified address, an unverified one, a disabled account, and a used up daily e-mail limit. */
const HERE = ["verified", "claimed", "disabled", "has-had-letters"] as const;
const NOBODY = "nobody";
const MAX_TRIES = 3;
const addressOf = (name: string) => `${name}@example.org`;

interface Asked {
  status: number;
  headers: Record<string, string>;
  text: string;
  work: readonly string[];
}

/** How long each took to be answered, in milliseconds. */
type Times = Map<string, number>;

/** Kind and table of a statement: an upsert counts as an insert. */
const shapeOf = (statement: string): string =>
  statement
    .replace(/^\d+ × /, "")
    .replace(/^insert into "?(\w+)"?.*$/is, "insert $1")
    .replace(/^(?:select|delete).* from "(\w+)".*$/s, (all, table: string) => `${all.split(" ")[0]} ${table}`);

class Place {
  readonly daemon: TestDaemon;
  readonly people: People;
  #count = 0;

  private constructor(daemon: TestDaemon, people: People) {
    this.daemon = daemon;
    this.people = people;
  }

  static async start(env: Record<string, string>): Promise<Place> {
    const daemon = await startTelling({ ROOMD_SIGNUP_PER_HOUR: "0", ...env });
    const place = new Place(daemon, await People.first(daemon));
    for (const name of HERE) await place.people.member("member", { email: addressOf(name) });
    place.people.sql((database) => {
      const verify = "UPDATE users SET verified_at = created_at WHERE email <> ?";
      database.prepare(verify).run(addressOf("claimed"));
    });
    await daemon.cli(["user", "disable", addressOf("disabled")]);
    return place;
  }

  #unsent(): number {
    const count = "SELECT count(*) AS n FROM mails WHERE next_at IS NOT NULL";
    return this.people.sql((database) => database.query<{ n: number }, []>(count).get()?.n ?? 0);
  }

  /**
   * Sends the form with each address, after a discarded warm-up: the responses, without the address and without values unique to each
   * response. Retries if a commit started by other work, such as a timer, included the writes of a request.
   */
  async ask(path: string, form: (email: string) => Record<string, string>, names: readonly string[]) {
    for (let tries = 1; ; tries++) {
      const result = await this.#askEach(path, form, names);
      const committed = new Set([...result.asked.values()].map(({ work }) => work.includes("COMMIT")));
      if (!isWorkTold || committed.size === 1 || tries === MAX_TRIES) return result;
    }
  }

  async #askEach(path: string, form: (email: string) => Record<string, string>, names: readonly string[]) {
    const ids = new Map<string, string>();
    const pages = new Map<string, PageSeen>();
    const times: Times = new Map();
    for (const each of ["first-of-all", ...names]) {
      const id = `asked-${++this.#count}`;
      ids.set(each, id);
      const visitor = new Visitor(this.daemon);
      const began = performance.now();
      pages.set(each, await visitor.send(path, form(addressOf(each)), { "x-request-id": id }));
      times.set(each, performance.now() - began);
      // Whatever is written after the answer is written before this.
      await this.daemon.ok("POST", "/v1/orgs/self/keys", { name: id });
      // The carrier's commit would take the next request's writes along, under its own name.
      await until("the e-mails are sent", () => this.#unsent() === 0, 60_000);
    }
    const statements = statementsOf(this.daemon);
    const askedOf = (each: string): Asked => {
      const { status, headers, text } = pages.get(each) as PageSeen;
      const id = ids.get(each) ?? "";
      const kept = [...headers].filter(([name]) => !/^(date|x-request-id|set-cookie|content-length)$/.test(name));
      const normalized = text.replaceAll(addressOf(each), "ADDRESS").replaceAll(id, "REQUEST");
      const plain = normalized.replaceAll(/data-options="[^"]*"/g, "OPTIONS").replaceAll(/usr_\w+/g, "USER");
      return {
        status,
        headers: Object.fromEntries(kept),
        text: plain,
        work: withoutCarrier((statements.get(id) ?? []).map(shapeOf)),
      };
    };
    return { asked: new Map(names.map((each) => [each, askedOf(each)])), times };
  }
}

const OF_CARRIER = /^update "?mails"? set "attempts"/;

/** The result of an earlier e-mail may be written in the same commit. */
function withoutCarrier(work: string[]): string[] {
  const isIts = (at: number) => OF_CARRIER.test(work[at] ?? "");
  return work.filter(
    (each, at) =>
      !isIts(at) && !(each === "SAVEPOINT one" && isIts(at + 1)) && !(each === "RELEASE one" && isIts(at - 1)),
  );
}

if (!isWorkTold)
  console.log("the database work of each answer: left out, because a host does it for several callers at a time");

let mail: MailServer;
let open: Place;
beforeAll(async () => {
  mail = await MailServer.start();
  open = await Place.start({ ...mail.env, ROOMD_SIGNUP_MODE: "open" });
  for (let n = 0; n < 6; n++) await new Visitor(open.daemon).send("/recover", { email: addressOf("has-had-letters") });
}, 90_000);
afterAll(async () => {
  await open.daemon.stop();
  await mail.stop();
});

function expectAlike(responses: Map<string, Asked>): Asked {
  const nobody = responses.get(NOBODY) as Asked;
  for (const [who, { work, ...response }] of responses) {
    const { work: expected, ...saidToNobody } = nobody;
    expect({ who, ...response }).toEqual({ who, ...saidToNobody });
    if (isWorkTold) expect({ who, work }).toEqual({ who, work: expected });
  }
  if (isWorkTold) expect(nobody.work.length).toBeGreaterThan(0);
  return nobody;
}

describe("the existence of an account is not revealed", { timeout: 90_000 }, () => {
  test("by the recovery page", async () => {
    const { status, text, work } = expectAlike(
      (await open.ask("/recover", (email) => ({ email }), [...HERE, NOBODY])).asked,
    );
    expect([status, text]).toEqual([200, expect.stringContaining(LETTER)]);
    if (isWorkTold) expect(work).toEqual(expect.arrayContaining(["insert links", "insert mails", "COMMIT"]));
  });

  test("by the sign-up page", async () => {
    const names = ["verified", "claimed", "disabled", NOBODY];
    const { status, text, work } = expectAlike((await open.ask("/signup", (email) => ({ email }), names)).asked);
    expect([status, text]).toEqual([200, expect.stringContaining(LETTER)]);
    if (isWorkTold)
      expect(work).toEqual(expect.arrayContaining(["insert links", "insert mails", "insert audit", "COMMIT"]));
  });

  test("by the sign-up page with operator approval and without e-mail", async () => {
    const place = await Place.start({ ROOMD_SIGNUP_MODE: "approval" });
    try {
      const form = (email: string) => ({ email, name: "Somebody", note: "please" });
      const { asked } = await place.ask("/signup", form, ["verified", "claimed", "disabled", NOBODY]);
      // Existing accounts are not shown to the operator: a different row without effect is written instead.
      for (const each of asked.values()) {
        const alike = each.work.map((step) => step.replace(/^insert (?:mails|signup_requests)$/, "insert one"));
        each.work = alike.filter((step) => step !== "select mails");
      }
      const { status, text, work } = expectAlike(asked);
      expect([status, text]).toEqual([200, expect.stringContaining("review")]);
      if (isWorkTold) expect(work).toContain("insert one");
    } finally {
      await place.daemon.stop();
    }
  });

  test("by the sign-in page, which compares a password for each address", async () => {
    const form = (email: string) => ({ email, password: "not the password" });
    const { asked, times } = await open.ask("/signin", form, [...HERE, NOBODY]);
    const { status, text } = expectAlike(asked);
    expect([status, text]).toEqual([401, expect.stringContaining('role="alert"')]);
    // Comparing takes nearly all of it; whatever else the host does only adds to it.
    const least = Math.min(...HERE.map((name) => times.get(name) ?? 0));
    for (const name of [NOBODY, ...HERE]) expect(times.get(name)).toBeGreaterThan(least / 2);
    expect(least).toBeGreaterThan(20);
  });

  test("by an invitation, whose page has the same form for everyone", async () => {
    await open.people.prove(open.people.owner);
    const path = await invite(open.people.owner, "viewer");
    const form = (email: string) => ({ name: "", email, password: PASSWORD });
    const { asked } = await open.ask(path, form, [...HERE, NOBODY]);
    const { status } = expectAlike(asked);
    expect(status).toBe(422);
  });
});

describe("a link's defect is not revealed", () => {
  test.each(["/signup", "/setup", "/verify"])("by %s", async (path) => {
    const person = await open.people.member("member");
    const form = { "/signup": { do: "look" }, "/setup": { step: "look" }, "/verify": {} }[path] ?? {};
    const tokens = ["A".repeat(43), "nonsense", ""];
    // Of another kind, and another's.
    await open.people.prove(open.people.owner);
    tokens.push((await invite(open.people.owner, "viewer")).split("/").at(-1) ?? "");
    const messages = new Set<string>();
    for (const token of tokens) {
      const visitor = path === "/verify" ? person : new Visitor(open.daemon);
      const { status, text } = await visitor.send(path, { ...form, token });
      const main = /<main[^>]*>(.*?)<\/main>/s.exec(text)?.[1] ?? "";
      messages.add(`${status} ${main.replaceAll(/value="[^"]*"/g, "VALUE").replaceAll(/req_\w+/g, "REQUEST")}`);
    }
    expect([...messages]).toEqual([expect.stringMatching(/^404 /)]);
  });
});
