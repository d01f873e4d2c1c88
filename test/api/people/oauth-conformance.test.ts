/**
 * Requirements of the conformance suite for an authorization server: its metadata, an authorization code grant without a resource, and
 * token responses.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Visitor } from "../../harness/browser/visitor.ts";
import { CodeGrant, type TokenAnswer, token } from "../../harness/clients/code-grant.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";

const REDIRECT = "http://127.0.0.1:33418/callback";
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

let daemon: TestDaemon;
let ada: Visitor;
let metadata: Json;
let client_id: string;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_OAUTH_REGISTRATIONS: "0" } });
  ada = await Visitor.owner(daemon);
  const response = await fetch(`${daemon.url}/.well-known/oauth-authorization-server`);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
  metadata = (await response.json()) as Json;
  client_id = (await register({ client_name: "Conformance", redirect_uris: [REDIRECT] })).body.client_id;
});
afterAll(() => daemon.stop());

async function register(request: Json): Promise<TokenAnswer> {
  const response = await fetch(metadata.registration_endpoint, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
}

/** Requirements for each response of an endpoint for programs (RFC 6749, 5.1 and 5.2). */
function expectJson({ headers }: TokenAnswer): void {
  expect(Object.fromEntries(headers)).toMatchObject({
    "content-type": "application/json",
    "cache-control": "no-store",
    pragma: "no-cache",
    "x-content-type-options": "nosniff",
  });
}

function expectTokens(answer: TokenAnswer): void {
  expect(answer.status).toBe(200);
  expectJson(answer);
  expect(Object.keys(answer.body).sort()).toEqual([
    "access_token",
    "expires_in",
    "refresh_token",
    "scope",
    "token_type",
  ]);
  expect(answer.body).toMatchObject({ token_type: "Bearer", expires_in: 3600 });
}

const begin = () => new CodeGrant(daemon, { client_id, redirect_uri: REDIRECT });

test("the metadata has this issuer, codes, S256, no client secrets, and support for client metadata documents", () => {
  expect(metadata).toMatchObject({
    issuer: daemon.webUrl,
    authorization_endpoint: `${daemon.webUrl}/authorize`,
    token_endpoint: `${daemon.webUrl}/token`,
    response_types_supported: ["code"],
    grant_types_supported: expect.arrayContaining(["authorization_code", "refresh_token"]),
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
  });
});

test("the redirect has the code once, with the unchanged state and the issuer, and no request parameters", async () => {
  const grant = begin();
  const back = await grant.allow(ada);
  expect(back.href.slice(0, back.href.indexOf("?"))).toBe(REDIRECT);
  for (const [name, value] of [
    ["code", expect.stringMatching(/^oac-[\w-]{43}$/)],
    ["state", grant.state],
    ["iss", metadata.issuer],
  ]) {
    expect([name, back.searchParams.getAll(name)]).toEqual([name, [value]]);
  }
  for (const none of ["error", "code_challenge", "code_challenge_method", "client_id"]) {
    expect(back.searchParams.has(none)).toBe(false);
  }
  const taken = await grant.exchange(back.searchParams.get("code") ?? "");
  expectTokens(taken);
  expectTokens(await grant.refresh(taken.body.refresh_token));
});

test("tokens of a device have the same response format as those of a code", async () => {
  const params = new URLSearchParams({ client_id: "roomd", resource: daemon.url });
  const response = await fetch(metadata.device_authorization_endpoint, { method: "POST", body: params });
  const answer = { status: response.status, headers: response.headers, body: (await response.json()) as Json };
  expectJson(answer);
  const { user_code, device_code } = answer.body;
  const poll = () => token(daemon, { grant_type: DEVICE_GRANT, client_id: "roomd", device_code });
  const waiting = await poll();
  expect([waiting.status, waiting.body.error]).toEqual([400, "authorization_pending"]);
  expectJson(waiting);
  await ada.send("/device", { user_code, gives: "all", rooms: "", lasts: "", do: "allow" });
  expectTokens(await poll());
});

describe("the error", () => {
  test.each<[string, Record<string, string>, number, string]>([
    ["without a grant type", { client_id: "x" }, 400, "invalid_request"],
    [
      "for an unsupported grant type",
      { grant_type: "password", username: "a", password: "b" },
      400,
      "unsupported_grant_type",
    ],
    [
      "without the client's parameters",
      { grant_type: "authorization_code", code: "x", code_verifier: "y" },
      400,
      "invalid_request",
    ],
    [
      "for a guessed code",
      { grant_type: "authorization_code", client_id: "x", code: `oac-${"A".repeat(43)}`, code_verifier: "y" },
      400,
      "invalid_grant",
    ],
    [
      "for a guessed refresh token",
      { grant_type: "refresh_token", client_id: "x", refresh_token: `ort-${"A".repeat(43)}` },
      400,
      "invalid_grant",
    ],
    [
      "for a guessed device code",
      { grant_type: DEVICE_GRANT, client_id: "roomd", device_code: `odc-${"A".repeat(43)}` },
      400,
      "invalid_grant",
    ],
  ])("of the token endpoint %s is JSON that is not cacheable", async (_, form, status, error) => {
    const answer = await token(daemon, form);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
    expect(answer.body.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
    expectJson(answer);
  });

  test("of the token endpoint for another method or content type is the same", async () => {
    const got = await fetch(metadata.token_endpoint);
    const asJson = await fetch(metadata.token_endpoint, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    for (const [response, status] of [
      [got, 405],
      [asJson, 415],
    ] as const) {
      const body = (await response.json()) as Json;
      expect([response.status, body.error]).toEqual([status, "invalid_request"]);
      expectJson({ status, headers: response.headers, body });
    }
  });

  test("of registration is JSON that is not cacheable", async () => {
    const refused = await register({ redirect_uris: ["javascript:alert(1)"] });
    expect([refused.status, refused.body.error]).toEqual([400, "invalid_redirect_uri"]);
    expectJson(refused);
    const made = await register({ client_name: "Another", redirect_uris: [REDIRECT] });
    expect(made.status).toBe(201);
    expectJson(made);
  });
});
