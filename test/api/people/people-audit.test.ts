/**
 * All actions of people are audited: real calls produce each kind of record that the code defines, and no record contains a credential or
 * the identity behind an ID.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { linkIn, MailServer } from "../../fixtures/mail-server.ts";
import { OpenIdProvider } from "../../fixtures/openid-provider.ts";
import { PaymentService } from "../../fixtures/stripe.ts";
import { auditKinds } from "../../harness/audit-kinds.ts";
import { Passkey } from "../../harness/browser/authenticator.ts";
import { Visitor } from "../../harness/browser/visitor.ts";
import { CodeGrant, token } from "../../harness/clients/code-grant.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { query } from "../../harness/durability/aged.ts";
import { idOf, invite, PASSWORD, People, tokenOf } from "../../harness/people.ts";
import { run, until } from "../calls.ts";

const FAMILIES = ["auth", "user", "member", "oauth", "billing"];
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
const REDIRECT = "http://127.0.0.1:33418/callback";
const OTHER_PASSWORD = "another password, as long";
const WRONG_PASSWORD = "what somebody has guessed";
const ALLOW = { gives: "all", rooms: "", lasts: "", do: "allow" };
const home = mkdtempSync(join(tmpdir(), "roomd-people-audit-"));

let mail: MailServer;
let provider: OpenIdProvider;
let service: PaymentService;
let daemon: TestDaemon;
let people: People;
let owner: Visitor;
/** Values that must not occur in a record, by kind. */
const secrets = new Map<string, string>();
const visitors: Visitor[] = [];

/** As it is, and remembered. */
function secret(label: string, value: unknown): string {
  if (typeof value !== "string" || value.length < 6) throw new Error(`there is no ${label}`);
  secrets.set(`${label}: ${secrets.size}`, value);
  return value;
}
/** Registers a browser: its cookies are secrets too, at each time that they are collected. */
function browser(visitor = new Visitor(daemon)): Visitor {
  visitors.push(visitor);
  return visitor;
}
function rememberCookies(): void {
  for (const { cookies } of visitors)
    for (const [name, value] of cookies) secrets.set(`cookie ${name} ${value}`, value);
}
async function letterTo(address: string, subject: RegExp): Promise<string> {
  return secret("a letter's link", linkIn(await mail.letterTo(address, subject)).token);
}
async function member(role: string, email: string): Promise<Visitor> {
  await people.prove(owner);
  return browser(await people.member(role, { email: secret("an address", email) }));
}

beforeAll(async () => {
  mail = await MailServer.start();
  provider = new OpenIdProvider();
  service = new PaymentService();
  const file = (name: string, text: string) => {
    writeFileSync(join(home, name), `${secret(`the file ${name}`, text)}\n`);
    return join(home, name);
  };
  daemon = await TestDaemon.start({
    env: {
      ...mail.env,
      ROOMD_SIGNUP_MODE: "approval",
      ROOMD_SIGNUP_PER_HOUR: "0",
      ROOMD_OAUTH_REGISTRATIONS: "0",
      ROOMD_OIDC_ISSUER: provider.issuer,
      ROOMD_OIDC_CLIENT_ID: provider.client.id,
      ROOMD_OIDC_CLIENT_SECRET_FILE: file("oidc", provider.client.secret),
      ROOMD_BILLING_PROVIDER: "stripe",
      ROOMD_BILLING_STRIPE_SECRET_KEY_FILE: file("stripe", service.secretKey),
      ROOMD_BILLING_STRIPE_WEBHOOK_SECRET_FILE: file("webhook", service.webhookSecret),
      ROOMD_BILLING_STRIPE_PRICE: service.price,
      ROOMD_BILLING_STRIPE_API_URL: service.url,
    },
  });
  for (const each of [PASSWORD, OTHER_PASSWORD, WRONG_PASSWORD]) secret("a password", each);
  for (const each of [daemon.apiKey, daemon.operatorKey]) secret("a key", each);
  people = await People.first(daemon);
  owner = browser(people.owner);
  secret("an address", "owner@example.org");
}, 120_000);
afterAll(async () => {
  await daemon.stop();
  await Promise.all([mail.stop(), provider.stop(), service.stop()]);
  rmSync(home, { recursive: true });
});

interface Row {
  event: string;
  text: string;
}

/** All records there are, the host's own too; as text, without the chain's hashes. */
const rows = (): Row[] =>
  query<Json>(daemon, "SELECT * FROM audit").map(({ prev_hash: _, hash: __, ...row }) => ({
    event: row.event,
    text: JSON.stringify(row),
  }));

describe("people", { timeout: 60_000 }, () => {
  test("sign up, are approved by the operator, and join", async () => {
    const email = secret("an address", "signs-up@example.org");
    const form = { name: secret("a person's name", "Ludmilla Quist"), note: secret("a note", "what I want it for") };
    await browser().send("/signup", { email });
    const asks = await letterTo(email, /Confirm/);
    expect((await browser().send("/signup", { do: "ask", token: asks, ...form })).status).toBe(200);
    await run(daemon, "signup", "approve", email);
    const visitor = browser();
    const done = { do: "done", token: await letterTo(email, /can sign up now/), org_name: "Quist", password: PASSWORD };
    expect((await visitor.send("/signup", { ...done, name: form.name })).to).toBe("/");

    const refused = secret("an address", "refused@example.org");
    await browser().send("/signup", { email: refused });
    const second = await letterTo(refused, /Confirm/);
    await browser().send("/signup", { do: "ask", token: second, ...form });
    await run(daemon, "signup", "refuse", refused);
    const invited = secret("an address", "invited@example.org");
    secret("a link of the operator's", tokenOf((await run(daemon, "signup", "invite", invited)).url));
  });

  test("sign in, fail to, prove their presence, and sign out", async () => {
    const visitor = await member("member", "signs-in@example.org");
    const form = { email: "signs-in@example.org", password: PASSWORD };
    const elsewhere = browser();
    expect((await elsewhere.send("/signin", { ...form, password: WRONG_PASSWORD })).status).toBe(401);
    expect((await elsewhere.send("/signin", form)).to).toBe("/");
    rememberCookies();
    expect((await visitor.api("GET", "/v1/account/sessions")).body.items).toHaveLength(2);
    people.staleProofs();
    await people.prove(visitor);
    expect((await visitor.send("/account/ways", { do: "password", password: OTHER_PASSWORD })).status).toBe(303);
    expect((await visitor.send("/signout", {})).to).toBe("/signin");
  });

  test("have passkeys", async () => {
    const visitor = await member("member", "passkeys@example.org");
    const { options } = (await visitor.api("POST", "/v1/account/passkeys/options", {})).body;
    secret("a challenge", options.challenge);
    const key = new Passkey(`http://localhost:${new URL(daemon.url).port}`);
    const made = await visitor.api("POST", "/v1/account/passkeys", { name: "laptop", response: key.make(options) });
    expect(made.status).toBe(201);
    expect((await visitor.api("GET", "/v1/account/passkeys")).body.items).toHaveLength(1);
    expect((await visitor.api("DELETE", `/v1/account/passkeys/${made.body.passkey_id}`)).status).toBe(200);
  });

  test("link an account of a provider", async () => {
    const visitor = await member("member", "links@example.org");
    const person = { sub: "a subject", email: secret("an address", "elsewhere@example.net"), name: "Elsewhere" };
    provider.person = { ...person, email_verified: true };
    const left = await visitor.send("/account/ways", { do: "link" });
    const back = new URL((await fetch(left.to ?? "", { redirect: "manual" })).headers.get("location") ?? "");
    for (const name of ["code", "state"]) secret(`the issuer's ${name}`, back.searchParams.get(name));
    const linked = await visitor.send(back.pathname, Object.fromEntries(back.searchParams));
    expect(linked.to).toBe("/account/ways");
    const [{ identity_id }] = (await visitor.api("GET", "/v1/account/identities")).body.items;
    expect((await visitor.api("DELETE", `/v1/account/identities/${identity_id}`)).status).toBe(200);
  });

  test("change name and address, recover by e-mail, and lose an address that another verifies", async () => {
    const visitor = await member("member", "claims@example.org");
    await visitor.api("PATCH", "/v1/account", { name: secret("a person's name", "Zerlina Quist") });
    const email = secret("an address", "shows@example.org");
    expect((await visitor.send("/account", { do: "email", email })).to).toBe("/account");
    expect((await visitor.send("/verify", { token: await letterTo(email, /Confirm/) })).to).toBe("/account");
    await browser().send("/recover", { email });
    const back = browser();
    const way = { token: await letterTo(email, /Reset your access/), step: "done", password: OTHER_PASSWORD };
    expect((await back.send("/setup", way)).to).toBe("/");

    const claimed = "claims-it@example.org";
    await member("member", claimed);
    expect((await back.send("/account", { do: "email", email: claimed })).to).toBe("/account");
    expect((await back.send("/verify", { token: await letterTo(claimed, /Confirm/) })).to).toBe("/account");
  });

  test("are invited, viewed, changed and removed", async () => {
    await people.prove(owner);
    const withdrawn = (await owner.api("POST", "/v1/orgs/self/invitations", { role: "viewer" })).body;
    secret("an invitation", withdrawn.url.split("/").at(-1));
    const open = await owner.api("GET", "/v1/orgs/self/invitations");
    expect(open.body.items.length).toBeGreaterThan(0);
    const path = `/v1/orgs/self/invitations/${withdrawn.invitation_id}`;
    expect((await owner.api("DELETE", path)).status).toBe(200);
    const taken = secret("an invitation", (await invite(owner, "member")).split("/").at(-1));
    const visitor = browser();
    const email = secret("an address", "is-removed@example.org");
    await visitor.send(`/invite/${taken}`, { name: "Removed", email, password: PASSWORD });
    const user_id = await idOf(visitor);
    const of = `/v1/orgs/self/members/${user_id}`;
    expect((await owner.api("PATCH", of, { role: "admin" })).status).toBe(200);
    expect((await owner.api("GET", "/v1/orgs/self/members")).status).toBe(200);
    expect((await owner.api("DELETE", of)).status).toBe(200);
  });

  test("are enabled, disabled, shown their data, and deleted", async () => {
    const email = "is-forgotten@example.org";
    const visitor = await member("member", email);
    secret("a link of the operator's", tokenOf((await run(daemon, "user", "link", email)).url));
    for (const verb of ["disable", "enable", "sign-out"]) await run(daemon, "user", verb, email);
    await visitor.send("/signin", { email, password: PASSWORD });
    expect((await visitor.api("GET", "/v1/account/export")).status).toBe(200);
    await run(daemon, "user", "export", email);
    expect((await visitor.api("DELETE", `/v1/account?email=${email}`)).status).toBe(200);
    const other = "is-forgotten-too@example.org";
    await member("viewer", other);
    await run(daemon, "user", "forget", other);
  });
});

describe("applications", { timeout: 60_000 }, () => {
  const register = async (): Promise<string> => {
    const response = await fetch(`${daemon.url}/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ client_name: "By hand", redirect_uris: [REDIRECT] }),
    });
    return ((await response.json()) as Json).client_id;
  };
  const rememberTokens = ({ access_token, refresh_token }: Json) => {
    secret("an access token", access_token);
    return secret("a refresh token", refresh_token);
  };

  test("are authorized by a code, work, refresh, and are signed out, also by a replayed code", async () => {
    const visitor = await member("member", "grants@example.org");
    for (const isReused of [false, true]) {
      const grant = new CodeGrant(daemon, { client_id: await register(), redirect_uri: REDIRECT });
      const code = secret("a code", (await grant.allow(visitor)).searchParams.get("code"));
      const { body } = await grant.exchange(code);
      rememberTokens((await grant.refresh(rememberTokens(body))).body);
      if (isReused) expect((await grant.exchange(code)).status).toBe(400);
      else {
        const [{ grant_id }] = (await visitor.api("GET", "/v1/account/grants")).body.items;
        const listed = (await owner.api("GET", "/v1/orgs/self/applications")).body.items;
        expect(listed.map((each: Json) => each.grant_id)).toContain(grant_id);
        expect((await visitor.api("DELETE", `/v1/account/grants/${grant_id}`)).status).toBe(200);
      }
    }
    const grant = new CodeGrant(daemon, { client_id: await register(), redirect_uri: REDIRECT });
    const code = secret("a code", (await grant.allow(visitor)).searchParams.get("code"));
    const refresh_token = rememberTokens((await grant.exchange(code)).body);
    const form = new URLSearchParams({ token: refresh_token });
    expect((await fetch(`${daemon.url}/revoke`, { method: "POST", body: form })).status).toBe(200);
  });

  test("are authorized from a device, and denied", async () => {
    const visitor = await member("member", "devices@example.org");
    for (const choice of ["allow", "deny"]) {
      const params = new URLSearchParams({ client_id: "roomd", resource: daemon.url });
      const response = await fetch(`${daemon.url}/device_authorization`, { method: "POST", body: params });
      const { user_code, device_code } = (await response.json()) as Json;
      for (const each of [user_code, user_code.replace("-", ""), device_code]) secret("a device's code", each);
      await visitor.send("/device", { user_code, ...ALLOW, do: choice });
      const { status, body } = await token(daemon, { grant_type: DEVICE_GRANT, client_id: "roomd", device_code });
      expect([choice, status]).toEqual([choice, choice === "allow" ? 200 : 400]);
      if (choice === "allow") rememberTokens(body);
    }
  });
});

test("a plan is bought, viewed, and has its key", async () => {
  await people.prove(owner);
  const at = "/v1/orgs/self/billing";
  const { checkout_id, url } = (await owner.api("POST", `${at}/checkouts`)).body;
  secret("where it is paid", url);
  service.pay(checkout_id);
  await until(
    async () => (await owner.api("GET", `${at}/checkouts/${checkout_id}`)).body,
    ({ status }: Json) => status !== "open",
  );
  expect((await owner.api("GET", at)).body).toMatchObject({ plan: "starter" });
  const taken = await owner.api("POST", `${at}/checkouts/${checkout_id}/key`);
  expect(taken.status).toBe(201);
  secret("a key", taken.body.key);
  secret("the portal", (await owner.api("POST", `${at}/portal`)).body.url);
});

test("these tests produce each kind of record", async () => {
  const kinds = auditKinds(FAMILIES);
  expect(kinds.length).toBeGreaterThan(45);
  const left = (): string[] => [...new Set(rows().map(({ event }) => event))];
  // Records of reads are written a little later.
  await until(
    () => kinds.filter((kind) => !left().includes(kind)),
    (missing) => missing.length === 0,
    3000,
  );
  // And none that the code does not name.
  expect(left().filter((event) => FAMILIES.includes(event.split(".")[0] ?? "") && !kinds.includes(event))).toEqual([]);
});

test("no record has a credential, an address, or a name", () => {
  rememberCookies();
  const all = rows();
  const found = [...secrets].flatMap(([label, value]) =>
    all.filter(({ text }) => text.toLowerCase().includes(value.toLowerCase())).map(({ event }) => `${event}: ${label}`),
  );
  expect(found).toEqual([]);
  expect(secrets.size).toBeGreaterThan(60);
  // Permitted values are found by the same search.
  expect(all.filter(({ text }) => text.includes("By hand")).length).toBeGreaterThan(0);
  for (const { event, text } of all.filter((row) => FAMILIES.includes(row.event.split(".")[0] ?? ""))) {
    // All credentials made by the service have 32 bytes.
    expect([event, /(?<![\w-])[\w-]{43}(?![\w-])/.exec(text)?.[0]]).toEqual([event, undefined]);
    expect([event, /[\w.+-]+@[\w-]+\.\w+/.exec(text)?.[0]]).toEqual([event, undefined]);
  }
});

test("the audit over the API has none either, and its chains verify", async () => {
  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?limit=1000");
  const host = await run(daemon, "audit", "list", "--host");
  const text = JSON.stringify([items, host.items]);
  expect(text).toContain("auth.failed");
  expect([...secrets].filter(([, value]) => text.includes(value)).map(([label]) => label)).toEqual([]);
  expect((await daemon.cli(["audit", "verify", "--host"])).status).toBe(0);
});
