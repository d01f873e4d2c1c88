/** People: the first owner by the setup link, others by invitation, the permissions of a session, and its end. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Operation, READ_SCOPES } from "../../../shared/api/contract.ts";
import { operations } from "../../../shared/api/operations.ts";
import { formWith, Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeOrg, until } from "../calls.ts";

const PASSWORD = "a long enough secret";
const ADA = { name: "Ada <b>", email: "Ada@Example.org", password: PASSWORD };
const BOB = { name: "Bob", email: "bob@example.org", password: "another long secret" };

let daemon: TestDaemon;
let ada: Visitor;
let bob: Visitor;

const tokenOf = (url: string) => new URL(url).hash.slice(1);
const userLink = async (...args: string[]): Promise<Json> => {
  const { status, stdout, stderr } = await daemon.cli(["user", "link", ...args, "--json"]);
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
};
/** Moves a time of all open sessions `seconds` into the past. */
function age(column: "proved_at" | "seen_at" | "created_at", seconds: number): void {
  const database = new Database(join(daemon.dataDir, "roomd.db"));
  database.exec("PRAGMA busy_timeout = 5000");
  const before = new Date(Date.now() - seconds * 1000).toISOString();
  database.prepare(`UPDATE sessions SET ${column} = ? WHERE ended_at IS NULL`).run(before);
  database.close();
}
const recorded = async (event: string): Promise<Json[]> =>
  (await daemon.ok("GET", `/v1/orgs/self/audit?event=${event}&limit=100`)).items;

beforeAll(async () => {
  daemon = await TestDaemon.start();
  ada = new Visitor(daemon);
  bob = new Visitor(daemon);
});
afterAll(() => daemon.stop());

describe("the first owner", () => {
  test("joins by the setup link, which is valid once", async () => {
    const { url } = await userLink();
    expect(url).toMatch(/^http:\/\/localhost:\d+\/setup#[\w-]{43}$/);
    const token = tokenOf(url);
    const first = await ada.send("/setup", { token });
    expect(first).toMatchObject({ status: 200, text: expect.stringContaining('name="email"') });
    const short = await ada.send("/setup", { token, step: "done", ...ADA, password: "short", email: "nobody" });
    expect(short.status).toBe(422);
    for (const field of ["password", "email"]) expect(short.text).toContain(`data-field="${field}"`);
    expect(short.text).not.toContain('short"');
    const done = await ada.send("/setup", { token, step: "done", ...ADA });
    expect(done).toMatchObject({ status: 303, to: "/" });
    expect(ada.session).toMatch(/^[\w-]{43}$/);
    expect(done.headers.get("set-cookie")).toMatch(/; Path=\/; HttpOnly; SameSite=Lax/);
    const again = await new Visitor(daemon).send("/setup", { token, step: "done", ...BOB });
    expect(again.status).toBe(404);
    const account = await ada.api("GET", "/v1/account");
    expect(account.body).toMatchObject({ email: "ada@example.org", name: ADA.name, role: "owner", has_password: true });
    const { status, stdout } = await daemon.cli(["user", "link"]);
    expect([status, stdout]).toEqual([1, ""]);
  });

  test("is one of two concurrent users of the link", async () => {
    const other = await TestDaemon.start();
    try {
      const made = JSON.parse((await other.cli(["user", "link", "--json"])).stdout);
      const form = { token: tokenOf(made.url), step: "done", password: PASSWORD, name: "x" };
      const both = ["a@example.org", "b@example.org"].map((email) =>
        new Visitor(other).send("/setup", { ...form, email }),
      );
      expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([303, 404]);
    } finally {
      await other.stop();
    }
  });

  test("sees the account in pages, which show input as text", async () => {
    for (const path of ["/account", "/account/keys", "/account/sessions", "/org/members"]) {
      const page = await ada.see(path);
      expect([path, page.status]).toEqual([path, 200]);
      expect(page.text).not.toContain("<b>·");
      expect(page.text).toContain("Ada &lt;b>");
      expect(page.headers.get("content-security-policy")).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
      expect(page.headers.get("cross-origin-opener-policy")).toBe("same-origin");
      expect(page.headers.get("cache-control")).toBe("no-store");
    }
    expect(await new Visitor(daemon).see("/account")).toMatchObject({ status: 303, to: "/signin" });
  });
});

describe("signing in", () => {
  test("accepts the address in any case, and gives the same answer for a wrong address and a wrong password", async () => {
    const visitor = new Visitor(daemon);
    const wrong = await visitor.send("/signin", { email: ADA.email, password: "not the password" });
    const nobody = await visitor.send("/signin", { email: "nobody@example.org", password: "not the password" });
    expect([wrong.status, nobody.status]).toEqual([401, 401]);
    const alertText = (text: string) => /role="alert">(.*?)<\/div>/s.exec(text)?.[1];
    expect(alertText(wrong.text)).toBe(alertText(nobody.text));
    expect(await visitor.send("/signin", { email: "ADA@example.ORG ", password: PASSWORD })).toMatchObject({
      status: 303,
      to: "/",
    });
    expect(await visitor.see("/signin")).toMatchObject({ status: 303, to: "/" });
    expect(await visitor.send("/signout", {})).toMatchObject({ status: 303, to: "/signin" });
    expect(visitor.session).toBe("");
  });

  test("throttles repeated failures, and no other user", async () => {
    const visitor = new Visitor(daemon);
    const statuses: number[] = [];
    // The delay doubles: on a busy host the first may be over before the next try comes.
    while (statuses.at(-1) !== 429 && statuses.length < 10)
      statuses.push((await visitor.send("/signin", { email: "held@example.org", password: "x" })).status);
    expect(statuses.slice(0, 4)).toEqual([401, 401, 401, 401]);
    expect(statuses.at(-1)).toBe(429);
    const late = await visitor.send("/signin", { email: "held@example.org", password: "x" });
    expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await visitor.send("/signin", { email: ADA.email, password: PASSWORD })).status).toBe(303);
  });

  test("is audited, without password or cookie", async () => {
    const signedIn = await recorded("auth.signed_in");
    expect(signedIn.length).toBeGreaterThan(1);
    expect(signedIn[0]).toMatchObject({
      actor: { type: "user", id: expect.stringMatching(/^usr_/), name: "" },
      source: "web",
      details: { by: expect.any(String) },
    });
    const all = JSON.stringify((await daemon.ok("GET", "/v1/orgs/self/audit?limit=1000")).items);
    expect(all).not.toContain(PASSWORD);
    expect(all).not.toContain(ada.session);
  });
});

describe("a session", () => {
  test("reads room data by role, and changes none of it", async () => {
    await daemon.room("seen");
    expect((await ada.api("GET", "/v1/rooms")).body.items).toHaveLength(1);
    const own: readonly string[] = ["open", "key", "account", ...READ_SCOPES];
    const refused = Object.values(operations).filter(
      ({ access, openToHost, ofAccount, watched }: Operation) =>
        !own.includes(access) && !openToHost && !ofAccount && !watched,
    );
    expect(refused.length).toBeGreaterThan(30);
    for (const { method, path } of refused) {
      const url = path
        .replace(/\{org_id\}/, "self")
        .replace(/\{room_id\}/, "seen")
        .replaceAll(/\{[^}]*\}/g, "x");
      const body = method === "GET" || method === "DELETE" ? undefined : {};
      expect([method, path, (await ada.api(method, url, body)).body.code]).toEqual([method, path, "hub_is_read_only"]);
    }
    // An operation with a read scope must have a read-only method.
    const reads: readonly string[] = READ_SCOPES;
    const writers = Object.values<Operation>(operations).filter(
      ({ access, watched, method }) => (watched || reads.includes(access)) && method !== "GET",
    );
    expect(writers.map(({ name }) => name)).toEqual([]);
    // An attached client can type: that is not watching.
    expect(Object.values<Operation>(operations).flatMap(({ name, watched }) => (watched ? [name] : []))).toEqual([
      "terminal_list",
      "terminal_get",
      "terminal_watch",
      "screen_get",
      "screen_view",
      "recording_list",
      "recording_get",
      "recording_data",
      "execution_list",
      "execution_get",
      "execution_stream",
    ]);
  });

  test("is accepted only from pages of the service", async () => {
    for (const site of ["cross-site", "same-site", "none"]) {
      const answer = await ada.api("GET", "/v1/rooms", undefined, { "sec-fetch-site": site });
      expect([site, answer.status, answer.body.code]).toEqual([site, 403, "foreign_request"]);
      const form = await ada.send("/account", { do: "name", name: "Mallory" }, { "sec-fetch-site": site });
      expect([site, form.status]).toEqual([site, 403]);
      // A followed link shows the page.
      const visit = { "sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
      expect((await ada.see("/account", visit)).status).toBe(200);
      const framed = { ...visit, "sec-fetch-dest": "iframe" };
      expect(await ada.see("/account", framed)).toMatchObject({ status: 303, to: "/signin" });
    }
    expect((await ada.api("GET", "/v1/account")).body.name).toBe(ADA.name);
  });

  test("is ignored if the request has a key", async () => {
    const answer = await ada.api("GET", "/v1/me", undefined, {
      ...bearer(daemon.apiKey),
      "sec-fetch-site": "cross-site",
    });
    expect(answer).toMatchObject({ status: 200, body: { key_id: expect.stringMatching(/^kid_/) } });
    expect((await daemon.problem("GET", "/v1/account")).code).toBe("insufficient_scope");
  });

  test("creates keys only with a fresh proof, and each is shown once", async () => {
    age("proved_at", 700);
    const page = await ada.see("/account/keys");
    const form = { ...formWith(page.text, "do", "make"), name: "laptop", may: "all", ends: "" };
    const first = await ada.send("/account/keys", form);
    expect(first).toMatchObject({ status: 403, text: expect.stringContaining('name="proof"') });
    expect((await ada.api("POST", "/v1/orgs/self/keys", { name: "x" })).body.code).toBe("proof_required");
    const wrong = await ada.send("/account/keys", { ...form, proof: "wrong" });
    expect(wrong.text).toContain('role="alert"');
    const made = await ada.send("/account/keys", { ...form, proof: PASSWORD });
    expect(made.status).toBe(200);
    const key = /export ROOMD_API_KEY=(key-\w{43})/.exec(made.text)?.[1] ?? "";
    expect(made.text).toContain(`export ROOMD_URL=${daemon.webUrl}`);
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(key))).body).toMatchObject({ name: "laptop" });
    const again = await ada.send("/account/keys", form);
    expect(again).toMatchObject({ status: 303, to: "/account/keys" });
    expect((await ada.see("/account/keys")).text).not.toContain(key);
    const { key_id, created_by } = (await ada.api("GET", "/v1/orgs/self/keys")).body.items[0];
    expect(created_by).toEqual({ type: "user", id: (await ada.api("GET", "/v1/account")).body.user_id });
    expect((await ada.submit("/account/keys", { do: "revoke", key_id })).text).toContain('class="done"');
    expect((await ada.see("/account/keys")).text).not.toContain('class="done"');
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(key))).status).toBe(401);
  });

  test("expires when unused, and at its maximal age", async () => {
    for (const [column, days] of [
      ["seen_at", 15],
      ["created_at", 91],
    ] as const) {
      const visitor = new Visitor(daemon);
      await visitor.send("/signin", { email: ADA.email, password: PASSWORD });
      expect((await visitor.api("GET", "/v1/account")).status).toBe(200);
      age(column, days * 86_400);
      expect((await visitor.api("GET", "/v1/account")).body.code).toBe("session_ended");
      age(column, 0);
    }
    await ada.send("/signin", { email: ADA.email, password: PASSWORD });
  });

  test("that is ended is disconnected within half a second, with its streams", async () => {
    const other = new Visitor(daemon);
    await other.send("/signin", { email: ADA.email, password: PASSWORD });
    const stream = await other.fetch("GET", "/v1/orgs/self/events", { accept: "text/event-stream" });
    expect(stream.status).toBe(200);
    const over = (async () => {
      const reader = stream.body?.getReader();
      for (;;) if ((await reader?.read().catch(() => ({ done: true })))?.done) return performance.now();
    })();
    const { items } = (await ada.api("GET", "/v1/account/sessions")).body;
    const own = items.find(({ is_this }: Json) => is_this);
    expect(items.length).toBeGreaterThan(1);
    const endedAt = performance.now();
    expect((await ada.api("DELETE", "/v1/account/sessions/others")).body.sessions_ended).toBe(items.length - 1);
    expect((await over) - endedAt).toBeLessThan(500);
    expect((await other.api("GET", "/v1/account")).body.code).toBe("session_ended");
    expect((await ada.api("GET", "/v1/account/sessions")).body.items).toMatchObject([{ session_id: own.session_id }]);
  });
});

describe("members", () => {
  const invite = async (body: Json) => await ada.api("POST", "/v1/orgs/self/invitations", body);

  test("join by an invitation, once, and only its recipient", async () => {
    const { body } = await invite({ role: "member", email: "Bob@example.org" });
    const path = new URL(body.url).pathname;
    expect(await bob.see(path)).toMatchObject({ status: 200, text: expect.stringContaining("<bdi>default</bdi>") });
    const foreign = await bob.send(path, { ...BOB, email: "eve@example.org" });
    expect([foreign.status, foreign.text]).toEqual([422, expect.stringContaining('data-field="email"')]);
    expect(await bob.send(path, BOB)).toMatchObject({ status: 303, to: "/" });
    expect((await bob.api("GET", "/v1/account")).body).toMatchObject({ role: "member", name: "Bob" });
    expect((await new Visitor(daemon).see(path)).status).toBe(404);
    expect((await ada.see("/org/members")).text).toContain("bob@example.org");
  });

  test("have their own keys, see no others, and grant no more than their role", async () => {
    expect((await bob.api("GET", "/v1/orgs/self/keys")).body.items).toEqual([]);
    const { status, body } = await bob.api("POST", "/v1/orgs/self/keys", { name: "bob's" });
    expect(status).toBe(201);
    expect(body.scopes).not.toContain("org:admin");
    expect(body.scopes).not.toContain("keys:write");
    const more = await bob.api("POST", "/v1/orgs/self/keys", { name: "more", scopes: ["org:admin"] });
    expect(more.body.code).toBe("scope_escalation");
    const first = (await daemon.ok("GET", "/v1/me")).key_id;
    expect((await bob.api("DELETE", `/v1/orgs/self/keys/${first}`)).status).toBe(404);
    expect((await bob.api("POST", "/v1/orgs/self/invitations", { role: "viewer" })).body.code).toBe(
      "insufficient_scope",
    );
    expect((await bob.api("GET", "/v1/orgs/self/invitations")).body.code).toBe("insufficient_scope");
    expect((await bob.see("/org/members")).text).not.toContain('value="invite"');
  });

  test("are changed by authorized roles, and an owner remains", async () => {
    const { items } = (await ada.api("GET", "/v1/orgs/self/members")).body;
    const [owner, member] = ["owner", "member"].map((role) => items.find((each: Json) => each.role === role).user_id);
    const set = (visitor: Visitor, userId: string, role: string) =>
      visitor.api("PATCH", `/v1/orgs/self/members/${userId}`, { role });
    expect((await set(ada, owner, "viewer")).body.code).toBe("last_owner");
    expect((await ada.api("DELETE", "/v1/orgs/self/members/self")).body.code).toBe("last_owner");
    expect((await set(bob, member, "owner")).body.code).toBe("insufficient_scope");
    const [own] = (await bob.api("GET", "/v1/orgs/self/keys")).body.items;
    expect((await set(ada, member, "viewer")).body).toMatchObject({ role: "viewer" });
    // Viewers cannot create API keys.
    const { items: keys } = (await ada.api("GET", "/v1/orgs/self/keys")).body;
    expect(keys.find(({ key_id }: Json) => key_id === own.key_id)).toMatchObject({ state: "revoked" });
    expect((await bob.api("POST", "/v1/orgs/self/keys", { name: "x" })).body.code).toBe("insufficient_scope");
    expect((await bob.see("/account/keys")).text).not.toContain('value="make"');
    // Of webhooks it is no refusal about keys.
    expect((await bob.api("GET", "/v1/orgs/self/webhooks")).body).toMatchObject({
      code: "insufficient_scope",
      details: { required: "org:admin" },
    });
    expect((await set(ada, member, "admin")).body).toMatchObject({ role: "admin" });
    expect((await set(bob, owner, "member")).body.code).toBe("insufficient_scope");
    expect((await bob.api("POST", "/v1/orgs/self/invitations", { role: "owner" })).body.code).toBe(
      "insufficient_scope",
    );
  });

  test("that are removed lose sessions and keys immediately", async () => {
    const { body: key } = await bob.api("POST", "/v1/orgs/self/keys", { name: "again" });
    const { user_id } = (await bob.api("GET", "/v1/account")).body;
    const removed = await ada.api("DELETE", `/v1/orgs/self/members/${user_id}`);
    const ended = { webhooks: 0, ports: 0, ssh_keys: 0, applications: 0 };
    expect(removed.body).toEqual({ user_id, keys_revoked: 1, sessions_ended: 1, ended });
    expect((await bob.api("GET", "/v1/account")).body.code).toBe("session_ended");
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(key.key))).status).toBe(401);
    expect((await bob.send("/signin", BOB)).status).toBe(401);
    const ends = (await recorded("member.removed")).filter(({ outcome }: Json) => outcome === "success");
    expect(ends).toMatchObject([{ details: { user_id, keys_revoked: 1, key_ids: [key.key_id] } }]);
  });

  test("accept an invitation with their existing account", async () => {
    const { body } = await invite({ role: "viewer" });
    const wrong = await new Visitor(daemon).send(new URL(body.url).pathname, { ...BOB, password: "not bob's secret" });
    expect(wrong.status).toBe(401);
    expect(await bob.send(new URL(body.url).pathname, BOB)).toMatchObject({ status: 303, to: "/" });
    expect((await bob.api("GET", "/v1/account")).body).toMatchObject({ role: "viewer" });
  });
});

describe("a person of two organizations", () => {
  test("sees one at a time, and loses open streams of the other", async () => {
    const second = await makeOrg(daemon, "second");
    const argv = ["user", "create", "dana@example.org", "--name", "Dana", "--role", "owner", "--org", second.org_id];
    const { url } = JSON.parse((await daemon.cli([...argv, "--json"])).stdout);
    const dana = new Visitor(daemon);
    await dana.send("/setup", { token: tokenOf(url), step: "done", password: PASSWORD });
    const { body } = await dana.api("POST", "/v1/orgs/self/invitations", { role: "viewer" });
    const path = new URL(body.url).pathname;
    const visit = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    expect((await ada.see(path, visit)).text).toMatch(/name="as" value="me"\/>.*<bdi>Ada/);
    expect(await ada.send(path, { as: "me" })).toMatchObject({ status: 303, to: "/" });
    const account = (await ada.api("GET", "/v1/account")).body;
    expect(account).toMatchObject({ org_id: second.org_id, role: "viewer" });
    expect((await ada.api("GET", "/v1/rooms")).body).toMatchObject({ org_id: second.org_id, items: [] });
    expect((await ada.api("GET", `/v1/orgs/${daemon.orgId}/members`)).body.code).toBe("org_not_found");

    const stream = await ada.fetch("GET", "/v1/orgs/self/events", { accept: "text/event-stream" });
    const reader = stream.body?.getReader();
    const over = (async () => {
      while (!(await reader?.read().catch(() => ({ done: true })))?.done);
      return performance.now();
    })();
    const changedAt = performance.now();
    const changed = await ada.api("PATCH", "/v1/account", { org_id: daemon.orgId });
    expect(changed.body).toMatchObject({ org_id: daemon.orgId, role: "owner" });
    expect((await over) - changedAt).toBeLessThan(600);
    expect((await ada.api("PATCH", "/v1/account", { org_id: "org_none" })).body.code).toBe("org_not_found");
  });

  test("has separate calls in each: the same Idempotency-Key is a different call", async () => {
    const third = await makeOrg(daemon, "third");
    const { url } = JSON.parse(
      (
        await daemon.cli([
          "user",
          "create",
          "eve@example.org",
          "--name",
          "Eve",
          "--role",
          "owner",
          "--json",
          "--org",
          third.org_id,
        ])
      ).stdout,
    );
    const eve = new Visitor(daemon);
    await eve.send("/setup", { token: tokenOf(url), step: "done", password: PASSWORD });
    const { body } = await eve.api("POST", "/v1/orgs/self/invitations", { role: "owner" });
    await ada.send(new URL(body.url).pathname, { as: "me" });
    await ada.send("/account", { do: "name", name: ADA.name, proof: PASSWORD });
    const make = () => ada.api("POST", "/v1/orgs/self/keys", { name: "twin" }, { "idempotency-key": "one" });
    const there = await make();
    await ada.api("PATCH", "/v1/account", { org_id: daemon.orgId });
    const here = await make();
    expect([there.status, here.status]).toEqual([201, 201]);
    expect(here.body.key_id).not.toBe(there.body.key_id);
    expect((await make()).body.key_id).toBe(here.body.key_id);
  });
});

describe("the operator", () => {
  test("restores a user's access by a link, which ends their sessions", async () => {
    const { url } = await userLink("bob@example.org");
    const visitor = new Visitor(daemon);
    const page = await visitor.send("/setup", { token: tokenOf(url) });
    const form = { ...formWith(page.text, "step", "done"), password: "a third long secret" };
    expect(await visitor.send("/setup", form)).toMatchObject({ status: 303, to: "/" });
    expect((await bob.api("GET", "/v1/account")).body.code).toBe("session_ended");
    expect((await bob.send("/signin", BOB)).status).toBe(401);
  });

  test("disables a user, and enables them again", async () => {
    await bob.send("/signin", { ...BOB, password: "a third long secret" });
    expect((await daemon.cli(["user", "disable", BOB.email])).status).toBe(0);
    await until(
      () => bob.api("GET", "/v1/account"),
      ({ body }) => body.code === "session_ended",
    );
    expect((await bob.send("/signin", { ...BOB, password: "a third long secret" })).status).toBe(401);
    expect((await daemon.cli(["user", "enable", BOB.email])).status).toBe(0);
    const { stdout } = await daemon.cli(["user", "list"]);
    expect(stdout).toMatch(/bob@example\.org/);
    const made = JSON.parse(
      (await daemon.cli(["user", "create", "cy@example.org", "--name", "Cy", "--org", daemon.orgId, "--json"])).stdout,
    );
    expect(made).toMatchObject({ email: "cy@example.org", url: expect.stringContaining("/setup#") });
    expect(
      (await daemon.cli(["user", "create", "cy@example.org", "--name", "Cy", "--org", daemon.orgId])).stderr,
    ).toContain("already");
  });

  test("serves no account pages if they are disabled", async () => {
    const without = await TestDaemon.start({ env: { ROOMD_WEB_ENABLED: "false" } });
    try {
      for (const path of ["/signin", "/account", "/setup"])
        expect((await new Visitor(without).see(path)).status).toBe(404);
      expect((await new Visitor(without).see("/docs")).status).toBe(200);
    } finally {
      await without.stop();
    }
  });
});
