/** External accounts (OpenID Connect): accepted and rejected sign-ins, and forged claims of an issuer or an attacker. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type Fault, OpenIdProvider } from "../../fixtures/openid-provider.ts";
import { Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { idOf, People } from "../../harness/people.ts";

const NAVIGATED = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
const home = mkdtempSync(join(tmpdir(), "roomd-oidc-"));

let provider: OpenIdProvider;
let daemon: TestDaemon;
let people: People;
beforeAll(async () => {
  provider = new OpenIdProvider();
  writeFileSync(join(home, "secret"), `${provider.client.secret}\n`);
  daemon = await TestDaemon.start();
  people = await People.first(daemon);
  const { org_id } = (await people.owner.api("GET", "/v1/account")).body;
  const configuration = {
    ROOMD_OIDC_ISSUER: provider.issuer,
    ROOMD_OIDC_CLIENT_ID: provider.client.id,
    ROOMD_OIDC_CLIENT_SECRET_FILE: join(home, "secret"),
    ROOMD_OIDC_NAME: "Example",
    ROOMD_OIDC_ROLE: "member",
    ROOMD_OIDC_ORG: org_id,
    ROOMD_OIDC_DOMAINS: "example.org, example.net",
  };
  Object.assign(daemon.env, configuration);
  await daemon.restart();
});
afterAll(async () => {
  await daemon.stop();
  await provider.stop();
  rmSync(home, { recursive: true });
});
let count = 0;
beforeEach(() => {
  provider.fault = {};
  provider.person = { sub: `s${++count}`, email: `e${count}@example.org`, email_verified: true, name: "Eve" };
});

/** The browser goes there and comes back: the address that it comes back to. */
async function away(visitor: Visitor, path = "/signin", form: Json = { do: "elsewhere" }): Promise<string> {
  const left = await visitor.send(path, form);
  if (left.status !== 303) throw new Error(`${left.status} ${left.text}`);
  const back = await fetch(left.to ?? "", { redirect: "manual" });
  return back.headers.get("location") ?? "";
}

/** Opens the return page, and submits its form. */
async function comeBack(visitor: Visitor, address: string) {
  const { pathname, search, searchParams } = new URL(address);
  const page = await visitor.see(pathname + search, NAVIGATED);
  expect([page.status, page.text.includes("data-go")]).toEqual([200, true]);
  return await visitor.send(pathname, Object.fromEntries(searchParams));
}

async function signIn(visitor = new Visitor(daemon)) {
  await visitor.see("/signin");
  const address = await away(visitor);
  return { visitor, address, page: await comeBack(visitor, address) };
}

test("a new user gets the configured organization and role, and is the same user the next time", async () => {
  const { visitor, page } = await signIn();
  expect([page.status, page.to]).toEqual([303, "/"]);
  const account = (await visitor.api("GET", "/v1/account")).body;
  expect(account).toMatchObject({ email: provider.person.email, name: "Eve", role: "member", has_password: false });
  // Another address there is still the same person here.
  provider.person = { ...provider.person, email: "moved@example.net" };
  const again = await signIn();
  expect(await idOf(again.visitor)).toBe(account.user_id);
  expect((await again.visitor.api("GET", "/v1/account")).body.email).toBe(account.email);
});

test("an e-mail address alone links no account: a user links it while signed in", async () => {
  const member = await people.member("member", { email: "here@example.org" });
  provider.person = { sub: "here", email: "here@example.org", email_verified: true, name: "Thief" };
  const thief = await signIn();
  expect([thief.page.status, thief.visitor.session]).toEqual([401, ""]);
  people.staleProofs();
  expect((await member.send("/account/ways", { do: "link" })).status).toBe(403);
  for (const each of [member, people.owner]) await people.prove(each);
  const linked = await comeBack(member, await away(member, "/account/ways", { do: "link" }));
  expect(linked.to).toBe("/account/ways");
  const { visitor } = await signIn();
  expect(await idOf(visitor)).toBe(await idOf(member));
  const [identity] = (await visitor.api("GET", "/v1/account/identities")).body.items;
  expect(identity).toMatchObject({ issuer: provider.issuer, label: "here@example.org", is_usable: true });
  // It is one person's.
  const other = await people.member("member");
  const taken = await comeBack(other, await away(other, "/account/ways", { do: "link" }));
  expect(taken.status).toBe(409);
  expect((await visitor.api("DELETE", `/v1/account/identities/${identity.identity_id}`)).status).toBe(200);
  expect((await signIn()).page.status).toBe(401);
});

test.each<[string, Json]>([
  ["that is unverified", { email_verified: false }],
  ["without a verified claim", { email_verified: undefined }],
  ["whose verified claim is a string", { email_verified: "true" }],
  ["of another domain", { email: "e@elsewhere.example" }],
  ["whose domain only ends in the allowed one", { email: "e@notexample.org" }],
])("an address %s creates no member", async (_, claims) => {
  provider.person = { ...provider.person, ...claims };
  const { visitor, page } = await signIn();
  expect([page.status, visitor.session]).toEqual([401, ""]);
});

test.each<[string, Fault]>([
  ["wrong nonce", { claims: { nonce: "another" } }],
  ["wrong audience", { claims: { aud: "another" } }],
  ["expired token", { claims: { exp: 1_700_000_000 } }],
  ["wrong issuer", { claims: { iss: "https://elsewhere.example" } }],
  ["no signature", { alg: "none" }],
  ["foreign signature", { isForged: true }],
  ["unexpected signature algorithm", { alg: "HS256" }],
  ["no subject", { claims: { sub: undefined } }],
  ["oversized token", { bytes: 300_000 }],
  ["foreign iss parameter", { iss: "https://elsewhere.example" }],
])("a provider's response is rejected: %s", async (_, fault) => {
  provider.fault = fault;
  const { visitor, page } = await signIn();
  expect([page.status, visitor.session]).toEqual([502, ""]);
  expect(page.text).not.toContain(provider.issuer);
  provider.fault = {};
  expect((await signIn()).page.to).toBe("/");
});

test("a user who declines at the provider gets an explanation", async () => {
  provider.fault = { error: "access_denied" };
  const { page } = await signIn();
  expect([page.status, page.text]).toEqual([401, expect.stringContaining('role="alert"')]);
});

test("a response is valid once, in the browser that started the sign-in", async () => {
  const { address, visitor, page } = await signIn();
  expect(page.to).toBe("/");
  const form = Object.fromEntries(new URL(address).searchParams);
  await visitor.send("/signout", {});
  expect((await visitor.send("/signin/return", form)).status).toBe(401);
  // An attacker makes a victim's browser return with the attacker's code.
  const thief = new Visitor(daemon);
  await thief.see("/signin");
  const stolen = Object.fromEntries(new URL(await away(thief)).searchParams);
  const victim = new Visitor(daemon);
  await victim.see("/signin");
  const own = Object.fromEntries(new URL(await away(victim)).searchParams);
  expect((await victim.send("/signin/return", stolen)).status).toBe(401);
  expect((await victim.send("/signin/return", { ...own, code: stolen.code ?? "" })).status).toBe(502);
  expect((await new Visitor(daemon).send("/signin/return", stolen)).status).toBe(401);
  expect(victim.session).toBe("");
});

test("a response for linking is valid for its user only, and starts no session", async () => {
  const [member, other] = [await people.member("member"), await people.member("member")];
  const form = Object.fromEntries(new URL(await away(member, "/account/ways", { do: "link" })).searchParams);
  expect((await other.send("/signin/return", form)).status).toBe(401);
  expect((await other.api("GET", "/v1/account/identities")).body.items).toEqual([]);
  expect((await new Visitor(daemon).send("/signin/return", form)).status).toBe(401);
  people.staleProofs();
  expect((await member.send("/signin/return", form)).status).toBe(403);
  expect((await member.api("GET", "/v1/account/identities")).body.items).toEqual([]);
  await people.prove(people.owner);
});

test("a disabled user is refused, and the last sign-in method cannot be removed", async () => {
  const { visitor } = await signIn();
  const { email } = provider.person;
  const [{ identity_id }] = (await visitor.api("GET", "/v1/account/identities")).body.items;
  const refused = await visitor.api("DELETE", `/v1/account/identities/${identity_id}`);
  expect([refused.status, refused.body.code]).toEqual([409, "last_way_in"]);
  await daemon.cli(["user", "disable", email]);
  const { page } = await signIn();
  expect(page.status).toBe(401);
});

test("the return page changes nothing by itself, and no record contains a code", async () => {
  const visitor = new Visitor(daemon);
  await visitor.see("/signin");
  const { pathname, search, searchParams } = new URL(await away(visitor));
  for (let i = 0; i < 3; i++) await visitor.see(pathname + search, NAVIGATED);
  expect(visitor.session).toBe("");
  expect((await visitor.send(pathname, Object.fromEntries(searchParams))).to).toBe("/");
  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?limit=1000");
  expect(JSON.stringify(items)).not.toContain(searchParams.get("code") ?? "none");
  expect(items.map(({ event }: Json) => event)).toEqual(
    expect.arrayContaining(["auth.identity_linked", "auth.identity_begun"]),
  );
});

test("guessed authorization codes are throttled before the issuer is called", async () => {
  Object.assign(daemon.env, { ROOMD_LIMITS_FAILED_LOGINS: "3" });
  await daemon.restart();
  const codes = new Set<number>();
  for (let i = 0; i < 20 && !codes.has(429); i++) {
    const visitor = new Visitor(daemon);
    await visitor.see("/signin");
    const { searchParams } = new URL(await away(visitor).catch(() => `${daemon.url}/?state=none`));
    const form = { ...Object.fromEntries(searchParams), code: "guessed" };
    codes.add((await visitor.send("/signin/return", form)).status);
  }
  expect([...codes].sort()).toEqual([429, 502]);
});

test("unlimited attempts from here on", async () => {
  Object.assign(daemon.env, { ROOMD_LIMITS_FAILED_LOGINS: "0" });
  await daemon.restart();
  expect((await signIn()).page.status).toBe(303);
});

test("a removed or unlinked user does not become a member again by signing in", async () => {
  for (const unlinks of [false, true]) {
    provider.person = { ...provider.person, sub: `departed ${unlinks}`, email: `departed-${unlinks}@example.org` };
    const { visitor } = await signIn();
    const user_id = await idOf(visitor);
    if (unlinks) {
      // Another way in, so that this one is not the last.
      people.sql((database) => database.prepare("UPDATE users SET password_hash = 'x' WHERE user_id = ?").run(user_id));
      const { items } = (await visitor.api("GET", "/v1/account/identities")).body;
      expect((await visitor.api("DELETE", `/v1/account/identities/${items[0].identity_id}`)).status).toBe(200);
    }
    await people.prove(people.owner);
    expect((await people.owner.api("DELETE", `/v1/orgs/self/members/${user_id}`)).status).toBe(200);
    // As if the person had been forgotten.
    people.sql((database) => {
      database.prepare("DELETE FROM identities WHERE user_id = ?").run(user_id);
      database.prepare("DELETE FROM users WHERE user_id = ?").run(user_id);
    });
    expect((await signIn()).page.status).toBe(401);
  }
});

test("an unverified claim to an address does not block its owner if strangers can sign up", async () => {
  const { organizations } = (await people.owner.api("GET", "/v1/account")).body;
  const elsewhere = await people.foreign("elsewhere");
  const { email, org_id } = (await elsewhere.api("GET", "/v1/account")).body;
  expect(org_id).not.toBe(organizations[0].org_id);
  provider.person = { ...provider.person, email };
  // Without public sign-up, the account with this address was admitted by an invitation or approval, and keeps it.
  expect((await signIn()).page.status).toBe(401);
  daemon.env.ROOMD_SIGNUP_MODE = "approval";
  await daemon.restart();
  const { visitor, page } = await signIn();
  expect([page.status, page.to]).toEqual([303, "/"]);
  expect((await visitor.api("GET", "/v1/account")).body).toMatchObject({ email, email_verified: true, role: "member" });
  expect((await elsewhere.api("GET", "/v1/account")).body.email).toMatch(/@no-address\.invalid$/);
});

test("groups at the provider set the role at each sign-in, and a lower role takes effect fully", async () => {
  daemon.env.ROOMD_OIDC_GROUP_ROLES = "platform = admin, engineers=member, guests=viewer";
  daemon.env.ROOMD_OIDC_ROLE = "none";
  await daemon.restart();
  const roleOf = async (visitor: Visitor) => (await visitor.api("GET", "/v1/account")).body.role;
  const eve = provider.person;
  provider.person = { ...eve, groups: ["all", "engineers", "platform"] };
  const { visitor } = await signIn();
  expect(await roleOf(visitor)).toBe("admin");
  const made = await visitor.api("POST", "/v1/orgs/self/keys", { name: "mine", scopes: ["keys:write"] });
  expect(made.status).toBe(201);

  provider.person = { ...provider.person, groups: "engineers" };
  const again = await signIn();
  expect(await roleOf(again.visitor)).toBe("member");
  const me = await daemon.api("GET", "/v1/me", undefined, { authorization: `Bearer ${made.body.key}` });
  expect(me.status).toBe(401);

  provider.person = { ...provider.person, groups: ["all"] };
  expect((await signIn()).page.status).toBe(401);
  provider.person = { ...provider.person, sub: "nobody", email: "nobody@example.org" };
  expect((await signIn()).page.status).toBe(401);

  // An owner is made here alone.
  await people.prove(people.owner);
  const user_id = await idOf(again.visitor);
  expect((await people.owner.api("PATCH", `/v1/orgs/self/members/${user_id}`, { role: "owner" })).status).toBe(200);
  provider.person = { ...eve, groups: ["guests"] };
  expect(await roleOf((await signIn()).visitor)).toBe("owner");
});
