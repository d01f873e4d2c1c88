/** Passkeys: valid and rejected sign-ins, and the last sign-in method, with a software authenticator. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Otherwise, Passkey } from "../../harness/browser/authenticator.ts";
import { formWith, type PageSeen, Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { idOf, invite, People } from "../../harness/people.ts";

let daemon: TestDaemon;
let people: People;
/** Browsers have passkeys at names only. */
let host: { host: string };
let origin: string;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  people = await People.first(daemon);
  host = { host: `localhost:${new URL(daemon.url).port}` };
  origin = `http://${host.host}`;
});
afterAll(() => daemon.stop());

/** WebAuthn options in a page. */
function optionsIn({ text }: PageSeen): Json {
  const [, shown = ""] = /data-options="([^"]*)"/.exec(text) ?? [];
  return JSON.parse(shown.replaceAll("&quot;", '"').replaceAll("&amp;", "&"));
}

/** Adds a passkey to the signed-in user. */
async function add(visitor: Visitor, otherwise: Otherwise = {}, key = new Passkey(origin)) {
  const { options } = (await visitor.api("POST", "/v1/account/passkeys/options", {})).body;
  const added = await visitor.api("POST", "/v1/account/passkeys", {
    name: "test",
    response: key.make(options, otherwise),
  });
  return { key, added, passkey_id: added.body.passkey_id };
}

const signInWith = (visitor: Visitor, answer: Json) =>
  visitor.send("/signin", { do: "passkey", passkey: JSON.stringify(answer) });

/** A fresh browser signs in by a passkey. */
async function signIn(key: Passkey, otherwise: Otherwise = {}) {
  const visitor = new Visitor(daemon);
  const options = optionsIn(await visitor.see("/signin", host));
  const answer = key.use(options, otherwise);
  return { visitor, answer, page: await signInWith(visitor, answer) };
}

test("a person adds a passkey, and signs in with it without a name", async () => {
  const member = await people.member("member");
  const { key, added } = await add(member);
  expect([added.status, added.body]).toEqual([
    201,
    expect.objectContaining({ name: "test", rp_id: "localhost", is_usable: true, last_used_at: null }),
  ]);
  const { visitor, page } = await signIn(key);
  expect([page.status, page.to]).toEqual([303, "/"]);
  expect(await idOf(visitor)).toBe(await idOf(member));
  const [listed] = (await member.api("GET", "/v1/account/passkeys")).body.items;
  expect(Date.parse(listed.last_used_at)).toBeGreaterThan(Date.now() - 60_000);
});

test("a passkey response is valid once, in the challenged browser, for its purpose", async () => {
  const { key } = await add(await people.member("member"));
  const { visitor, answer, page } = await signIn(key);
  expect(page.to).toBe("/");
  const again = visitor.copy();
  expect((await signInWith(again, answer)).status).toBe(401);
  // Requested in one browser, answered in another.
  const requester = new Visitor(daemon);
  const options = optionsIn(await requester.see("/signin", host));
  const other = new Visitor(daemon);
  await other.see("/signin", host);
  expect((await signInWith(other, key.use(options))).status).toBe(401);
  expect((await signInWith(new Visitor(daemon), key.use(options))).status).toBe(401);
  expect((await signInWith(requester, key.use(options))).to).toBe("/");
});

test.each<[string, Otherwise]>([
  ["at another origin", { origin: "https://elsewhere.example" }],
  ["at an origin with the same prefix", { origin: "http://localhost:1" }],
  ["for another relying party ID", { rpId: "elsewhere.example" }],
  ["without user verification", { isVerified: false }],
  ["for another user", { userHandle: Buffer.from("usr_other").toString("base64url") }],
  ["as a registration", { type: "webauthn.create" }],
  ["to a challenge that the service did not issue", { challenge: Buffer.alloc(56, 7).toString("base64url") }],
])("a sign-in %s is refused", async (_, otherwise) => {
  const { key } = await add(await people.member("member"));
  const { page, visitor } = await signIn(key, otherwise);
  expect([page.status, visitor.session]).toEqual([401, ""]);
  expect((await signIn(key)).page.to).toBe("/");
});

test("a modified signature, and one of another passkey, are refused", async () => {
  const { key } = await add(await people.member("member"));
  const visitor = new Visitor(daemon);
  const options = optionsIn(await visitor.see("/signin", host));
  const answer = key.use(options);
  const bytes = Buffer.from(answer.response.signature, "base64url");
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
  const changed = { ...answer, response: { ...answer.response, signature: bytes.toString("base64url") } };
  expect((await signInWith(visitor, changed)).status).toBe(401);
  const thief = new Passkey(origin);
  thief.userHandle = key.userHandle;
  const { id } = answer;
  expect((await signInWith(visitor, { ...thief.use(options), id, rawId: id })).status).toBe(401);
  for (const garbage of [
    "",
    "{",
    "[]",
    "null",
    '"x"',
    '{"id":1}',
    `{"id":"${id}"}`,
    `{"id":"${id}","response":null}`,
  ]) {
    expect((await visitor.send("/signin", { do: "passkey", passkey: garbage })).status).toBe(401);
  }
  expect((await signInWith(visitor, answer)).to).toBe("/");
});

test("a signature counter that goes back indicates a copy, and is refused", async () => {
  const { key } = await add(await people.member("member"));
  key.counter = 5;
  expect((await signIn(key)).page.to).toBe("/");
  expect((await signIn(key)).page.status).toBe(401);
  key.counter = 4;
  expect((await signIn(key)).page.status).toBe(401);
  key.counter = 6;
  expect((await signIn(key)).page.to).toBe("/");
});

test("the response for a new passkey is valid once, for its session and person only", async () => {
  const [member, other] = [await people.member("member"), await people.member("member")];
  const { options } = (await member.api("POST", "/v1/account/passkeys/options", {})).body;
  const key = new Passkey(origin);
  const body = { name: "k", response: key.make(options) };
  expect((await other.api("POST", "/v1/account/passkeys", body)).status).toBe(422);
  expect((await member.api("POST", "/v1/account/passkeys", body)).status).toBe(201);
  expect((await member.api("POST", "/v1/account/passkeys", body)).status).toBe(422);
  expect((await add(other, {}, key)).added.body.code).toBe("already_exists");
  for (const otherwise of [
    { origin: "https://elsewhere.example" },
    { rpId: "elsewhere" },
    { isVerified: false },
    { x5c: true },
  ]) {
    expect((await add(other, otherwise)).added.status).toBe(422);
  }
  expect((await other.api("GET", "/v1/account/passkeys")).body.items).toEqual([]);
  const [{ passkey_id }] = (await member.api("GET", "/v1/account/passkeys")).body.items;
  expect((await other.api("DELETE", `/v1/account/passkeys/${passkey_id}`)).body.code).toBe("passkey_not_found");
});

test("a disabled or removed person cannot sign in, nor can one with a deleted passkey", async () => {
  const member = await people.member("member", { email: "gone@example.org" });
  const { key, passkey_id } = await add(member);
  await daemon.cli(["user", "disable", "gone@example.org"]);
  expect((await signIn(key)).page.status).toBe(401);
  await daemon.cli(["user", "enable", "gone@example.org"]);
  const { visitor } = await signIn(key);
  expect((await visitor.api("DELETE", `/v1/account/passkeys/${passkey_id}`)).body).toEqual({
    passkey_id,
    removed: true,
  });
  expect((await signIn(key)).page.status).toBe(401);
});

test("an invited person joins with a passkey alone, which cannot be removed as the last sign-in method", async () => {
  const path = await invite(people.owner, "member");
  const visitor = new Visitor(daemon);
  const page = await visitor.see(path, host);
  const key = new Passkey(origin);
  const { user_id = "" } = formWith(page.text, "user_id", optionsUser(optionsIn(page)));
  const person = { name: "Pat", email: "pat@example.org", user_id };
  const passkey = JSON.stringify(key.make(optionsIn(page)));
  const thief = await visitor.send(path, { ...person, user_id: await idOf(people.owner), passkey });
  expect(thief.status).toBe(422);
  expect((await visitor.send(path, { ...person, passkey })).to).toBe("/");
  expect((await visitor.api("GET", "/v1/account")).body).toMatchObject({ user_id, has_password: false });
  const [{ passkey_id }] = (await visitor.api("GET", "/v1/account/passkeys")).body.items;
  const refused = await visitor.api("DELETE", `/v1/account/passkeys/${passkey_id}`);
  expect([refused.status, refused.body.code]).toEqual([409, "last_way_in"]);
  expect((await signIn(key)).page.to).toBe("/");
  await visitor.send("/account/ways", { do: "password", password: "a password at last" });
  expect((await visitor.api("DELETE", `/v1/account/passkeys/${passkey_id}`)).status).toBe(200);
});

const optionsUser = (options: Json): string => Buffer.from(options.user.id, "base64url").toString();

test("a passkey proves a person's presence, in the requesting session and for its own person only", async () => {
  const [member, other] = [await people.member("member"), await people.member("member")];
  const { key } = await add(member);
  const { key: others } = await add(other);
  people.staleProofs();
  const ask = () => member.send("/account/ways", { do: "begin" }, host);
  const response = await ask();
  expect(response.status).toBe(403);
  const options = optionsIn(response);
  expect(options.allowCredentials.map(({ id }: Json) => id)).toEqual([key.use(options).id]);
  const prove = (visitor: Visitor, answer: Json) =>
    visitor.send("/account/ways", { do: "begin", proof_passkey: JSON.stringify(answer) }, host);
  expect((await prove(member, others.use(options))).status).toBe(403);
  const otherOptions = optionsIn(await other.send("/account/ways", { do: "begin" }, host));
  expect((await prove(member, key.use(otherOptions))).status).toBe(403);
  expect((await prove(other, key.use(otherOptions))).status).toBe(403);
  const before = member.session;
  // The challenge is consumed, although another user's passkey answered it.
  expect((await prove(member, key.use(options))).status).toBe(403);
  const answer = key.use(optionsIn(await ask()));
  const proved = await prove(member, answer);
  expect([proved.status, proved.text.includes("Create passkey")]).toEqual([200, true]);
  expect(member.session).not.toBe(before);
  expect((await prove(member.copy(), answer)).status).toBe(403);
  await people.prove(people.owner);
});

test("a person has 20 passkeys at most", async () => {
  const member = await people.member("member");
  for (let count = 0; count < 20; count++) expect((await add(member)).added.status).toBe(201);
  const refused = await member.api("POST", "/v1/account/passkeys/options", {});
  expect([refused.status, refused.body.code]).toEqual([429, "quota_exceeded"]);
});

test("a flood of sign-in challenges does not invalidate an earlier one of the owner", async () => {
  const { key } = await add(people.owner);
  const visitor = new Visitor(daemon);
  const options = optionsIn(await visitor.see("/signin", host));
  const flood = new Visitor(daemon);
  for (let round = 0; round < 20; round++) {
    await Promise.all(Array.from({ length: 50 }, () => flood.see("/signin", host)));
  }
  expect((await signInWith(visitor, key.use(options))).to).toBe("/");
});

test("an IP address redirects to the name at which passkeys work, and the audit contains no part of a passkey response", async () => {
  const headers = { accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
  const visit = await fetch(`${daemon.url}/signin`, { headers, redirect: "manual" });
  expect(visit.headers.get("location")).toBe(`${origin}/signin`);
  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?limit=1000");
  expect(items.map(({ event }: Json) => event)).toContain("auth.passkey_added");
  expect(JSON.stringify(items)).not.toMatch(/clientDataJSON|signature|challenge/);
});
