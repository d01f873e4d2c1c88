/** Applications: discovery, consent by a person, permitted calls, and revocation. */
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMMAND_LINE } from "../../../daemon/domain/oauth/clients.ts";
import { GRANT_SCOPES } from "../../../shared/api/grants.ts";
import { Visitor } from "../../harness/browser/visitor.ts";
import { Application } from "../../harness/clients/application.ts";
import { BINARY, type Json, TestDaemon } from "../../harness/daemon.ts";
import { age as aged, query } from "../../harness/durability/aged.ts";
import { bare, bearer } from "../calls.ts";

const REDIRECT = "http://127.0.0.1:33418/callback";
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

let daemon: TestDaemon;
let ada: Visitor;
let bob: Visitor;
let viewer: Visitor;

const age = (table: string, column: string, seconds: number) => aged(daemon, table, column, seconds);
const call = (url: string, authorization: string | null, body: unknown) =>
  fetch(daemon.url + url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(authorization === null ? {} : { authorization }),
    },
    body: JSON.stringify(body),
  });
const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
const recorded = async (event: string): Promise<Json[]> =>
  (await daemon.ok("GET", `/v1/orgs/self/audit?event=${event}&limit=100`)).items;

/** A person who has accepted an invitation. */
async function member(role: string, email: string): Promise<Visitor> {
  const made = await ada.api("POST", "/v1/orgs/self/invitations", { role });
  const visitor = new Visitor(daemon);
  const form = { name: email, email, password: "another long secret" };
  await visitor.send(new URL(made.body.url).pathname, form);
  return visitor;
}

interface Asked {
  client_id: string;
  verifier: string;
  query: URLSearchParams;
}

/** Authorization request of a newly registered client, with the test's changes. */
async function asking(change: Record<string, string | null> = {}, redirect_uris = [REDIRECT]): Promise<Asked> {
  const { client_id } = await register({ client_name: "By hand", redirect_uris });
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    response_type: "code",
    client_id,
    redirect_uri: redirect_uris[0] ?? "",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    state: "xyz",
  });
  for (const [name, value] of Object.entries(change)) {
    if (value === null) query.delete(name);
    else query.set(name, value);
  }
  return { client_id, verifier, query };
}

async function register(metadata: Json): Promise<Json> {
  const response = await fetch(`${daemon.url}/register`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(metadata),
  });
  return { status: response.status, ...((await response.json()) as Json) };
}

const allow = { gives: "all", rooms: "", lasts: "", do: "allow" };
const decide = async (visitor: Visitor, { query }: Asked, choice: Record<string, string> = allow) =>
  await visitor.send("/authorize", { request: query.toString(), ...choice });

/** The code that comes of a person's yes. */
async function codeFor(request: Asked, visitor = ada): Promise<string> {
  const { to, text } = await decide(visitor, request);
  const code = to === null ? null : new URL(to).searchParams.get("code");
  if (code === null) throw new Error(text);
  return code;
}

const post = (path: string, form: Record<string, string>) => new Application(daemon, ada).post(path, form);
const exchange = ({ client_id, verifier }: Asked, code: string, change: Record<string, string> = {}) =>
  post("/token", {
    grant_type: "authorization_code",
    client_id,
    code,
    code_verifier: verifier,
    redirect_uri: REDIRECT,
    ...change,
  });
const refresh = ({ client_id }: { client_id: string }, refresh_token: string) =>
  post("/token", { grant_type: "refresh_token", client_id, refresh_token });

/** Tokens of a fresh grant. */
async function signedIn(change: Record<string, string | null> = {}, visitor = ada) {
  const request = await asking(change);
  const { body } = await exchange(request, await codeFor(request, visitor));
  return { ...request, tokens: body as Json };
}

beforeAll(async () => {
  // A test registers and fails more than a person does in an hour.
  daemon = await TestDaemon.start({ env: { ROOMD_OAUTH_REGISTRATIONS: "0" } });
  ada = await Visitor.owner(daemon);
  bob = await member("member", "bob@example.org");
  viewer = await member("viewer", "eve@example.org");
});
afterAll(() => daemon.stop());

describe("the official client", () => {
  test("discovers the authorization server, registers, is authorized, works, and refreshes", async () => {
    const application = new Application(daemon, ada, { name: "Official <client>" });
    const client = await application.connect();
    const { tools } = await client.listTools();
    expect(tools.length).toBeGreaterThan(20);
    const made = await client.callTool({ name: "room_create", arguments: { room_id: "by-oauth" } });
    expect(made.isError).not.toBe(true);
    const { body } = await ada.api("GET", "/v1/account/grants");
    const shown = { client_name: "Official <client>", redirect_host: "127.0.0.1:33418", room_ids: null };
    expect(body.items).toEqual([expect.objectContaining(shown)]);
    expect((await ada.see("/account/applications")).text).toContain("Official &lt;client>");
    // The next call sends an expired token: the client refreshes automatically.
    const before = application.saved?.access_token;
    age("oauth_tokens", "expires_at", 3700);
    expect((await client.callTool({ name: "room_list", arguments: {} })).isError).not.toBe(true);
    expect(application.saved?.access_token).not.toBe(before);
    await client.close();
  });

  test("requests more scopes when a tool requires them, and gets them only from the person", async () => {
    const application = new Application(daemon, ada, { name: "Careful", scope: "rooms:read" });
    const client = await application.connect({ gives: "read" });
    const refusal = await call("/mcp", `Bearer ${application.saved?.access_token}`, {
      ...LIST,
      method: "tools/call",
      params: { name: "room_create", arguments: { room_id: "more" } },
    });
    expect(refusal.status).toBe(403);
    const challenge = refusal.headers.get("www-authenticate") ?? "";
    expect(challenge).toContain('error="insufficient_scope"');
    expect(challenge).toMatch(/scope="[^"]*rooms:read[^"]*rooms:write"/);
    await expect(client.callTool({ name: "room_create", arguments: { room_id: "more" } })).rejects.toThrow();
    expect(String(application.asked)).toContain("rooms%3Awrite");
    await client.close();
  });

  test("is signed out within half a second, with its open streams", async () => {
    const application = new Application(daemon, ada, { name: "Short-lived" });
    const client = await application.connect();
    const token = `Bearer ${application.saved?.access_token}`;
    await daemon.room("watched");
    const waiting = client.callTool({
      name: "agent_wait",
      arguments: { room_id: "watched", agent_id: "a", timeout_ms: 30_000 },
    });
    const settled = waiting.then(
      () => performance.now(),
      () => performance.now(),
    );
    const { body } = await ada.api("GET", "/v1/account/grants");
    const { grant_id } = body.items.find(({ client_name }: Json) => client_name === "Short-lived");
    const endedAt = performance.now();
    expect(await ada.api("DELETE", `/v1/account/grants/${grant_id}`)).toMatchObject({
      status: 200,
      body: { grant_id },
    });
    expect((await settled) - endedAt).toBeLessThan(500);
    const after = await call("/mcp", token, LIST);
    expect(after.status).toBe(401);
    expect(
      (
        await refresh(
          { client_id: String(application.information?.client_id) },
          String(application.saved?.refresh_token),
        )
      ).body,
    ).toMatchObject({ error: "invalid_grant" });
    expect(await ada.api("DELETE", `/v1/account/grants/${grant_id}`)).toMatchObject({ status: 404 });
    expect((await recorded("oauth.ended")).length).toBeGreaterThan(0);
  });
});

describe("the metadata of the server", () => {
  test("conforms to the conformance suite", async () => {
    const response = await fetch(`${daemon.url}/.well-known/oauth-authorization-server`);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
    const metadata = (await response.json()) as Json;
    expect(metadata).toMatchObject({
      issuer: daemon.webUrl,
      response_types_supported: ["code"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
      client_id_metadata_document_supported: true,
      authorization_response_iss_parameter_supported: true,
      scopes_supported: GRANT_SCOPES,
    });
    for (const [name, url] of Object.entries(metadata)) {
      if (name.endsWith("_endpoint")) expect(URL.parse(String(url))?.origin).toBe(daemon.webUrl);
    }
    expect(await (await fetch(`${daemon.url}/.well-known/openid-configuration`)).json()).toEqual(metadata);
  });

  test("is referenced by the challenge of /mcp, and not by that of /mcp/key", async () => {
    const open = await call("/mcp", null, LIST);
    expect(open.status).toBe(401);
    const challenge = open.headers.get("www-authenticate") ?? "";
    const [, url = ""] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    expect(url).toBe(`${daemon.url}/.well-known/oauth-protected-resource/mcp`);
    expect(challenge).toContain('scope="rooms:read ');
    expect(await (await fetch(url)).json()).toMatchObject({
      resource: `${daemon.url}/mcp`,
      authorization_servers: [daemon.webUrl],
    });
    const closed = await call("/mcp/key", null, LIST);
    expect([closed.status, closed.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await call("/mcp/key", `Bearer ${daemon.apiKey}`, LIST)).status).toBe(200);
    for (const path of [
      "/.well-known/oauth-protected-resource/mcp/key",
      "/.well-known/oauth-protected-resource",
      "/.well-known/x",
    ]) {
      const none = await fetch(daemon.url + path);
      expect([path, none.status, none.headers.get("content-type")]).toEqual([path, 404, "application/problem+json"]);
    }
  });
});

describe("codes", () => {
  test("are returned with state and iss, and are valid once, for their client, with its verifier", async () => {
    const request = await asking();
    const { to } = await decide(ada, request);
    const answer = new URL(to ?? "").searchParams;
    expect([...answer.keys()].sort()).toEqual(["code", "iss", "state"]);
    expect([answer.get("state"), answer.get("iss")]).toEqual(["xyz", daemon.webUrl]);
    const code = String(answer.get("code"));
    const other = await asking();
    for (const change of [
      { client_id: other.client_id },
      { code_verifier: other.verifier },
      { code_verifier: "short" },
      { redirect_uri: "http://127.0.0.1:33418/other" },
      { code: `oac-${"A".repeat(43)}` },
    ]) {
      const { status, body } = await exchange(request, code, change);
      expect([change, status, body.error]).toEqual([change, 400, "invalid_grant"]);
    }
    const taken = await exchange(request, code);
    expect(["content-type", "cache-control"].map((name) => taken.headers.get(name))).toEqual([
      "application/json",
      "no-store",
    ]);
    expect(taken.status).toBe(200);
    expect(taken.body).toMatchObject({ token_type: "Bearer", expires_in: 3600, scope: GRANT_SCOPES.join(" ") });
    expect(taken.body).not.toHaveProperty("key_id");
    const token = `Bearer ${taken.body.access_token}`;
    expect((await call("/mcp", token, LIST)).status).toBe(200);
    // A reused code is rejected, and revokes the grant.
    expect((await exchange(request, code)).body.error).toBe("invalid_grant");
    expect((await call("/mcp", token, LIST)).status).toBe(401);
    expect((await refresh(request, taken.body.refresh_token)).body.error).toBe("invalid_grant");
    expect((await recorded("oauth.reused")).length).toBe(1);
  });

  test("expire after a minute", async () => {
    const request = await asking();
    const code = await codeFor(request);
    age("oauth_grants", "code_expires_at", 61);
    expect((await exchange(request, code)).body).toMatchObject({ error: "invalid_grant" });
  });

  test("of two concurrent exchanges of a code one gets tokens, which are then revoked", async () => {
    const request = await asking();
    const code = await codeFor(request);
    const both = await Promise.all([exchange(request, code), exchange(request, code)]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
    const token = both.find(({ status }) => status === 200)?.body.access_token;
    expect((await call("/mcp", `Bearer ${token}`, LIST)).status).toBe(401);
  });

  test("and tokens that revoke a grant get the same answers under concurrency as in sequence", async () => {
    const six = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: 6 }, work));
    for (let round = 0; round < 5; round++) {
      const request = await asking();
      const code = await codeFor(request);
      const answers = (await six(() => exchange(request, code))).map(({ body }) => body.error ?? "tokens");
      expect(answers.sort()).toEqual([...Array<string>(5).fill("invalid_grant"), "tokens"]);
      const other = await asking();
      const { body } = await exchange(other, await codeFor(other));
      const ended = await six(() => post("/revoke", { token: body.refresh_token }));
      expect(ended.map(({ status }) => status)).toEqual(Array<number>(6).fill(200));
    }
  });
});

test("the redirect URI of the consent page is part of the approval, also if the application gave none", async () => {
  const { query } = await asking({ redirect_uri: null });
  const { text } = await ada.see(`/authorize?${query}`);
  const request = /name="request" value="([^"]*)"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
  expect(new URLSearchParams(request).get("redirect_uri")).toBe(REDIRECT);
});

describe("refreshing", () => {
  test("too often for the detection of replays is refused, and used tokens stay known", async () => {
    const { tokens, ...request } = await signedIn();
    let newest: string = tokens.refresh_token;
    for (let n = 0; n < 60; n++) newest = (await refresh(request, newest)).body.refresh_token;
    expect(await refresh(request, newest)).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    age("oauth_tokens", "rotated_at", 4000);
    expect((await refresh(request, tokens.refresh_token)).body.error).toBe("invalid_grant");
    expect((await refresh(request, newest)).body.error).toBe("invalid_grant");
  });

  test("returns a successor, the same one for a minute, and revokes the grant after that", async () => {
    const { tokens, ...request } = await signedIn();
    const first = await refresh(request, tokens.refresh_token);
    expect(first.status).toBe(200);
    const again = await refresh(request, tokens.refresh_token);
    const { expires_in: _, ...expected } = first.body;
    expect(again.body).toMatchObject(expected);
    age("oauth_tokens", "rotated_at", 61);
    expect((await refresh(request, tokens.refresh_token)).body.error).toBe("invalid_grant");
    expect((await refresh(request, first.body.refresh_token)).body.error).toBe("invalid_grant");
    expect((await call("/mcp", `Bearer ${first.body.access_token}`, LIST)).status).toBe(401);
  });

  test("in any order and concurrently leaves one valid token", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }), { maxLength: 5 }),
        async (rounds) => {
          const { tokens, ...request } = await signedIn();
          const known: string[] = [tokens.refresh_token];
          for (const round of rounds) {
            const answers = await Promise.all(round.map((at) => refresh(request, known[at % known.length] ?? "")));
            for (const { status, body } of answers) {
              expect(status).toBe(200);
              if (!known.includes(body.refresh_token)) known.push(body.refresh_token);
            }
          }
          const [{ live }] = rows<{ live: number }>(
            `SELECT count(*) AS live FROM oauth_tokens WHERE kind = 'refresh' AND rotated_at IS NULL AND key_id =
           (SELECT key_id FROM oauth_grants WHERE client_id = '${request.client_id}')`,
          ) as [{ live: number }];
          expect(live).toBe(1);
          expect(new Set(known).size).toBe(known.length);
        },
      ),
      { numRuns: 10 },
    );
  });

  test("works only for the authorized client", async () => {
    const { tokens } = await signedIn();
    const other = await asking();
    expect((await refresh(other, tokens.refresh_token)).body.error).toBe("invalid_grant");
    expect((await refresh(other, tokens.access_token)).body.error).toBe("invalid_grant");
    const signedOut = await post("/revoke", { token: tokens.refresh_token });
    expect(signedOut.status).toBe(200);
    expect((await call("/mcp", `Bearer ${tokens.access_token}`, LIST)).status).toBe(401);
    expect((await post("/revoke", { token: "nonsense" })).status).toBe(200);
  });
});

/** Rows of the daemon's database. */
function rows<T>(sql: string): T[] {
  return query<T>(daemon, sql);
}

describe("an invalid authorization request", () => {
  test("is shown to the person if its application or redirect URI is unknown", async () => {
    const good = await asking();
    for (const change of [
      { client_id: "oap_01JB3ZK5Q8F7V9X2M4N6P8R0TA" },
      { client_id: null },
      { redirect_uri: "http://127.0.0.1:33418/elsewhere" },
      { redirect_uri: "https://evil.example/callback" },
      { redirect_uri: "http://localhost:33418/callback" },
    ]) {
      const query = new URLSearchParams(good.query);
      for (const [name, value] of Object.entries(change)) value === null ? query.delete(name) : query.set(name, value);
      const { status, to } = await ada.see(`/authorize?${query}`);
      expect([change, status, to]).toEqual([change, 400, null]);
      const forced = await ada.api("POST", "/v1/account/grants", { request: query.toString() });
      expect([change, forced.status, forced.body.code]).toEqual([change, 400, "invalid_body"]);
    }
  });

  test("is reported to the application otherwise, with iss", async () => {
    for (const [change, error] of [
      [{ response_type: "token" }, "unsupported_response_type"],
      [{ code_challenge: null }, "invalid_request"],
      [{ code_challenge_method: "plain" }, "invalid_request"],
      [{ scope: "everything" }, "invalid_scope"],
      [{ resource: "https://elsewhere.example/mcp" }, "invalid_target"],
    ] as const) {
      const { query } = await asking(change);
      const { status, to } = await new Visitor(daemon).see(`/authorize?${query}`);
      const answer = new URL(to ?? "").searchParams;
      expect([change, status, answer.get("error"), answer.get("iss"), answer.get("state")]).toEqual([
        change,
        303,
        error,
        daemon.webUrl,
        "xyz",
      ]);
    }
  });

  test("is redirected only to the person's own computer", async () => {
    const elsewhere = "https://elsewhere.example/callback";
    const { query } = await asking({ scope: "everything" }, [elsewhere]);
    const { status, to, text } = await new Visitor(daemon).see(`/authorize?${query}`);
    expect([status, to]).toEqual([400, null]);
    expect(text).toContain('role="alert"');
    // A denial by a person is reported to the application.
    const { to: location } = await decide(ada, await asking({}, [elsewhere]), { ...allow, do: "deny" });
    expect(location).toContain(`${elsewhere}?error=access_denied`);
  });

  test("is refused at registration", async () => {
    for (const uri of [
      "javascript:alert(1)",
      "data:text/html,x",
      "file:///etc/passwd",
      "http://example.org/callback",
      "https://example.org/#x",
      "https://a:b@example.org/",
      "nonsense",
    ]) {
      const answer = await register({ redirect_uris: [uri] });
      expect([uri, answer.status, answer.error]).toEqual([uri, 400, "invalid_redirect_uri"]);
    }
    expect(await register({ redirect_uris: [] })).toMatchObject({ status: 400 });
    const large = await register({ redirect_uris: [REDIRECT], client_name: "x".repeat(20_000) });
    expect(large.status).toBe(413);
    const registered = await register({
      redirect_uris: [REDIRECT],
      client_name: "two\nlines\u202e",
      token_endpoint_auth_method: "client_secret_basic",
    });
    expect(registered).toMatchObject({ status: 201, client_name: "two lines", token_endpoint_auth_method: "none" });
    expect(registered).not.toHaveProperty("client_secret");
  });
});

describe("authorization", () => {
  test("requires a person, who signs in first if necessary, and returns to the request", async () => {
    const request = await asking();
    const stranger = new Visitor(daemon);
    const sent = await stranger.see(`/authorize?${request.query}`);
    expect(sent).toMatchObject({ status: 303, to: "/signin" });
    const back = await stranger.send("/signin", { email: "bob@example.org", password: "another long secret" });
    expect(back).toMatchObject({ status: 303, to: `/authorize?${request.query}` });
    const page = await stranger.see(back.to ?? "");
    expect(page.text).toContain("By hand");
    expect(page.headers.get("content-security-policy")).not.toContain("form-action");
    // Once: the next time that person signs in, it is for the account.
    expect(stranger.cookies.has("roomd-asked")).toBe(false);
  });

  test("redirects nowhere else, whatever the browser's cookie contains", async () => {
    const stranger = new Visitor(daemon);
    for (const place of ["//evil.example/", "/account/keys", "https://evil.example/authorize?x", "/authorize\nx?"]) {
      stranger.cookies.set("roomd-asked", Buffer.from(place).toString("base64url"));
      const done = await stranger.send("/signin", { email: "bob@example.org", password: "another long secret" });
      expect([place, done.to]).toEqual([place, "/"]);
      await stranger.send("/signout", {});
    }
  });

  test("is refused from another site's page, and requires a fresh proof", async () => {
    const request = await asking();
    const form = { request: request.query.toString(), ...allow };
    for (const site of ["cross-site", "same-site", "none"]) {
      const foreign = await ada.send("/authorize", form, { "sec-fetch-site": site });
      expect([site, foreign.status]).toEqual([site, 403]);
    }
    age("sessions", "proved_at", 700);
    const proof = await ada.send("/authorize", form);
    expect(proof).toMatchObject({ status: 403, text: expect.stringContaining('name="proof"') });
    const proved = await ada.send("/authorize", { ...form, proof: "a long enough secret" });
    expect(new URL(proved.to ?? "").searchParams.get("code")).toMatch(/^oac-/);
  });

  test("can be denied, which is reported to the application", async () => {
    const request = await asking();
    const { to } = await decide(ada, request, { ...allow, do: "deny" });
    expect(Object.fromEntries(new URL(to ?? "").searchParams)).toMatchObject({
      error: "access_denied",
      state: "xyz",
      iss: daemon.webUrl,
    });
  });

  test("grants only scopes that the person has and chose", async () => {
    await daemon.room("bound");
    const request = await asking();
    const { to } = await decide(bob, request, {
      ...{ gives: "read", rooms: "bound", lasts: "3600", do: "allow" },
      proof: "another long secret",
    });
    const { body } = await exchange(request, String(new URL(to ?? "").searchParams.get("code")));
    expect(body.scope).not.toContain("write");
    const { items } = (await bob.api("GET", "/v1/account/grants")).body;
    expect(items[0]).toMatchObject({ room_ids: ["bound"], expires_at: expect.any(String) });
    const listed = await call("/mcp", `Bearer ${body.access_token}`, {
      ...LIST,
      method: "tools/call",
      params: { name: "room_list", arguments: {} },
    });
    expect(await listed.text()).toMatch(/bound/);
    const none = await decide(viewer, await asking(), { ...allow, proof: "another long secret" });
    expect(none).toMatchObject({ status: 403, to: null, text: expect.stringContaining("your role") });
    const wrong = await decide(ada, await asking(), { ...allow, gives: "more" });
    expect(wrong.to).toBeNull();
  });

  test("ends with the membership, and is reduced with the role", async () => {
    const carol = await member("admin", "carol@example.org");
    const { tokens } = await signedIn({}, carol);
    expect((await call("/mcp", `Bearer ${tokens.access_token}`, LIST)).status).toBe(200);
    const { user_id } = (await carol.api("GET", "/v1/account")).body;
    expect((await ada.api("PATCH", `/v1/orgs/self/members/${user_id}`, { role: "viewer" })).status).toBe(200);
    expect((await call("/mcp", `Bearer ${tokens.access_token}`, LIST)).status).toBe(401);
  });

  test("ends when the person is disabled", async () => {
    await member("member", "dan@example.org").then(async (dan) => {
      const { tokens } = await signedIn({}, dan);
      const { stdout } = await daemon.cli(["user", "disable", "dan@example.org", "--json"]);
      expect(JSON.parse(stdout)).toMatchObject({ disabled: true, applications_ended: 1 });
      expect((await call("/mcp", `Bearer ${tokens.access_token}`, LIST)).status).toBe(401);
    });
  });

  test("ends with a recovery that ends all others, also grants made by an intruder until then", async () => {
    const victim = await member("member", "robbed@example.org");
    const thief = victim.copy();
    const request = (await asking()).query.toString();
    const { url } = JSON.parse((await daemon.cli(["user", "link", "robbed@example.org", "--json"])).stdout);
    let isOver = false;
    const letIn = async () => {
      while (!isOver) await thief.api("POST", "/v1/account/grants", { request });
    };
    const lettingIn = [letIn(), letIn()];
    const back = new Visitor(daemon);
    const form = { token: new URL(url).hash.slice(1), step: "done", password: "a third long secret", only: "yes" };
    expect((await back.send("/setup", form)).to).toBe("/");
    isOver = true;
    await Promise.all(lettingIn);
    expect((await back.api("GET", "/v1/account/grants")).body.items).toEqual([]);
  });

  test("is limited to 100 per person, also for concurrent requests", async () => {
    const eager = await member("member", "eager@example.org");
    const request = (await asking()).query.toString();
    const all = Array.from({ length: 200 }, () => eager.api("POST", "/v1/account/grants", { request }));
    const codes = (await Promise.all(all)).map(({ body }) => body.code ?? "in").sort();
    expect(codes).toEqual([...Array<string>(100).fill("in"), ...Array<string>(100).fill("quota_exceeded")]);
    expect((await eager.api("GET", "/v1/account/grants")).body.items).toHaveLength(100);
  });

  test("is not possible with keys, or for another person", async () => {
    const { body } = await ada.api("GET", "/v1/account/grants");
    const [{ grant_id }] = body.items;
    expect((await bob.api("DELETE", `/v1/account/grants/${grant_id}`)).status).toBe(404);
    expect((await bare(daemon, "GET", "/v1/account/grants", bearer(daemon.apiKey))).status).toBe(403);
    // A grant is no key of the list, and cannot be made into one.
    const keys = await daemon.ok("GET", "/v1/orgs/self/keys");
    expect(keys.items.map(({ key_id }: Json) => key_id)).not.toContain(grant_id);
    expect((await bare(daemon, "POST", `/v1/orgs/self/keys/${grant_id}/rotate`, bearer(daemon.apiKey))).status).toBe(
      404,
    );
  });

  test("is listed and revoked by admins and keys of the organization, regardless of the member who granted it", async () => {
    const list = "/v1/orgs/self/applications";
    await signedIn({}, ada);
    const { tokens } = await signedIn({}, bob);
    const account = (await bob.api("GET", "/v1/account")).body;
    const [{ grant_id }] = (await bob.api("GET", "/v1/account/grants")).body.items;
    const found = (await ada.api("GET", `${list}?limit=1`)).body;
    expect(found.items).toMatchObject([{ grant_id, user_id: account.user_id, user_name: account.name }]);
    expect((await ada.api("GET", `${list}?limit=1&cursor=${found.next_cursor}`)).body.items).toHaveLength(1);
    expect((await ada.see("/org/members")).text).toContain(grant_id);
    for (const visitor of [bob, viewer]) {
      expect((await visitor.api("GET", list)).body.code).toBe("insufficient_scope");
      expect((await visitor.api("DELETE", `${list}/${grant_id}`)).body.code).toBe("insufficient_scope");
      expect((await visitor.see("/org/members")).text).not.toContain(grant_id);
    }
    expect((await call("/mcp", `Bearer ${tokens.access_token}`, LIST)).status).toBe(200);
    const listed = JSON.parse((await daemon.cli(["application", "list", "--limit", "1", "--json"])).stdout);
    expect(listed.items).toMatchObject([{ grant_id }]);
    const ended = JSON.parse((await daemon.cli(["application", "end", grant_id, "--json"])).stdout);
    expect(ended).toMatchObject({ grant_id, user_id: account.user_id, ended: { applications: 0 } });
    expect((await call("/mcp", `Bearer ${tokens.access_token}`, LIST)).status).toBe(401);
    expect((await ada.api("DELETE", `${list}/${grant_id}`)).body.code).toBe("grant_not_found");
    const records = (await recorded("oauth.ended")).filter(({ outcome }) => outcome === "success");
    expect(records.at(0)).toMatchObject({ details: { grant_id, user_id: account.user_id } });
    await signedIn({}, bob);
    const [again] = (await ada.api("GET", `${list}?limit=1`)).body.items;
    const page = await ada.send("/org/members", { do: "application", grant_id: again.grant_id });
    expect(page.status).toBe(303);
    const left = (await bob.api("GET", "/v1/account/grants")).body.items.map((each: Json) => each.grant_id);
    expect(left).not.toContain(again.grant_id);
  });

  test("for MCP is valid for MCP only", async () => {
    const { tokens } = await signedIn();
    const rest = await fetch(`${daemon.url}/v1/rooms`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    expect(rest.status).toBe(401);
    const all = await signedIn({ resource: daemon.url });
    const api = await fetch(`${daemon.url}/v1/rooms`, {
      headers: { authorization: `Bearer ${all.tokens.access_token}` },
    });
    expect(api.status).toBe(200);
  });
});

describe("device authorization", () => {
  const begin = () => post("/device_authorization", { client_id: "roomd", resource: daemon.url });
  const poll = (device_code: string) => post("/token", { grant_type: DEVICE_GRANT, client_id: "roomd", device_code });

  test("shows a code, which a person enters, and is granted", async () => {
    const { body } = await begin();
    expect(body).toMatchObject({
      user_code: expect.stringMatching(/^[A-Z]{4}-[A-Z]{4}$/),
      expires_in: 600,
      interval: 5,
    });
    expect((await poll(body.device_code)).body.error).toBe("authorization_pending");
    expect((await poll(body.device_code)).body.error).toBe("slow_down");
    const page = await ada.send("/device", { step: "look", user_code: body.user_code.toLowerCase() });
    expect(page.text).toContain("127.0.0.1");
    // It is compared with that of the terminal, however it was typed.
    expect(page.text).toContain(`>${body.user_code}<`);
    const done = await ada.send("/device", { user_code: body.user_code, ...allow });
    expect(done).toMatchObject({ status: 200, text: expect.stringContaining("Access granted") });
    const { status, body: tokens } = await poll(body.device_code);
    expect(status).toBe(200);
    const me = await fetch(`${daemon.url}/v1/me`, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    expect(me.status).toBe(200);
    expect((await poll(body.device_code)).body.error).toBe("invalid_grant");
    expect((await ada.send("/device", { user_code: body.user_code, ...allow })).status).toBe(404);
  });

  test("is granted once despite concurrent approvals, and leaves no other key", async () => {
    const countKeys = () => query(daemon, "SELECT 1 FROM api_keys WHERE kind = 'oauth'").length;
    for (let round = 0; round < 5; round++) {
      const { body } = await begin();
      const before = countKeys();
      const yes = { user_code: body.user_code, allow: true };
      const all = Array.from({ length: 6 }, () => ada.api("POST", "/v1/account/grants/device", yes));
      const statuses = (await Promise.all(all)).map(({ status }) => status);
      expect(statuses.sort()).toEqual([200, 404, 404, 404, 404, 404]);
      expect(countKeys()).toBe(before + 1);
      expect((await poll(body.device_code)).status).toBe(200);
    }
  });

  test("reports a denial, and a code that has expired", async () => {
    const denied = (await begin()).body;
    await ada.send("/device", { user_code: denied.user_code, ...allow, do: "deny" });
    expect((await poll(denied.device_code)).body.error).toBe("access_denied");
    const late = (await begin()).body;
    age("oauth_devices", "expires_at", 601);
    expect((await poll(late.device_code)).body.error).toBe("expired_token");
    expect((await ada.send("/device", { step: "look", user_code: late.user_code })).status).toBe(404);
    expect((await ada.send("/device", { step: "look", user_code: "ZZZZ-ZZZZ" })).status).toBe(404);
  });
});

describe("the command line", () => {
  test("signs in by a browser, works, refreshes, and signs out", async () => {
    const home = join(daemon.home, "home");
    mkdirSync(home);
    // Without a key, and after the sign-in without the service's URL.
    const env = { HOME: home, ROOMD_API_KEY: "", ROOMD_URL: "" };
    const file = join(home, ".config", "roomd", "credentials.json");
    const lost = await daemon.cli(["whoami"], undefined, { ...env, ROOMD_URL: daemon.url });
    expect([lost.status, lost.stderr]).toEqual([2, expect.stringContaining("roomd login")]);

    const login = spawn(BINARY, ["login", daemon.url], {
      env: { ...daemon.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = new Promise((done) => login.once("close", done));
    let output = "";
    for await (const chunk of login.stderr) {
      output += chunk;
      const code = /code ([A-Z]{4}-[A-Z]{4})\n/.exec(output)?.[1];
      if (code === undefined) continue;
      expect(output).toContain(`${daemon.webUrl}/device`);
      const done = await ada.send("/device", { user_code: code, ...allow, proof: "a long enough secret" });
      expect(done.text).toContain("Access granted");
      break;
    }
    expect(await ended).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(home, ".config", "roomd")).mode & 0o777).toBe(0o700);

    const cli = (...args: string[]) => daemon.cli(args, undefined, env);
    expect(await cli("whoami")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(COMMAND_LINE.name),
    });
    expect(await cli("room", "create", "by-hand")).toMatchObject({ status: 0 });
    const kept = JSON.parse(readFileSync(file, "utf8"));
    kept.services[daemon.url].expires_at_ms = 0;
    writeFileSync(file, JSON.stringify(kept));
    // Two concurrent commands refresh once.
    for (const { status } of await Promise.all([cli("whoami"), cli("room", "list")])) expect(status).toBe(0);
    const fresh = JSON.parse(readFileSync(file, "utf8")).services[daemon.url];
    expect(fresh.refresh_token).not.toBe(kept.services[daemon.url].refresh_token);

    expect(await cli("logout")).toMatchObject({ status: 0 });
    expect(existsSync(file)).toBe(false);
    const response = await fetch(`${daemon.url}/v1/me`, { headers: { authorization: `Bearer ${fresh.access_token}` } });
    expect(response.status).toBe(401);
    expect(await cli("logout")).toMatchObject({ status: 1 });
  });
});

test("no usable part of it is in the database, the logs or the audit", async () => {
  const text = rows<{ details: string }>("SELECT details FROM audit WHERE event LIKE 'oauth.%'");
  expect(JSON.stringify(text)).not.toMatch(/o(?:ac|at|rt|dc)-[\w-]{20}/);
});
