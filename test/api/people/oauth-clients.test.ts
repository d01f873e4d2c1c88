/** The usual MCP clients, each with its own requests: discovery of the authorization server, consent by a person, tool calls, refresh. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GRANT_SCOPES } from "../../../shared/api/grants.ts";
import { DocumentHost } from "../../fixtures/document-host.ts";
import { type AskedScopes, MCP_CLIENTS, type McpClient } from "../../fixtures/mcp-clients.ts";
import { Visitor } from "../../harness/browser/visitor.ts";
import { CodeGrant, type TokenAnswer } from "../../harness/clients/code-grant.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { freePort } from "../../harness/free-port.ts";
import { issue } from "../../harness/issued-certificate.ts";

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
const home = mkdtempSync(join(tmpdir(), "roomd-clients-"));

let host: DocumentHost;
let daemon: TestDaemon;
let ada: Visitor;
beforeAll(async () => {
  const issued = await issue(["localhost"]);
  writeFileSync(join(home, "ca.pem"), issued.authority);
  host = new DocumentHost(await freePort(), issued);
  daemon = await TestDaemon.start({
    env: {
      ROOMD_OAUTH_DOCUMENT_HOSTS: "localhost",
      ROOMD_OAUTH_REGISTRATIONS: "0",
      NODE_EXTRA_CA_CERTS: join(home, "ca.pem"),
    },
  });
  ada = await Visitor.owner(daemon);
});
afterAll(async () => {
  await daemon.stop();
  await host.stop();
  rmSync(home, { recursive: true });
});

const call = (authorization: Record<string, string>) =>
  fetch(`${daemon.url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...authorization },
    body: LIST,
  });
const read = async (url: string): Promise<Json> => (await (await fetch(url)).json()) as Json;

interface Found {
  /** The scopes that the challenge names. */
  challenge: string;
  resource: Json;
  server: Json;
}

/** From the 401 response to the metadata of the authorization server. */
async function discover(): Promise<Found> {
  const refused = await call({});
  expect(refused.status).toBe(401);
  const header = refused.headers.get("www-authenticate") ?? "";
  const named = (name: string) => new RegExp(`${name}="([^"]+)"`).exec(header)?.[1] ?? "";
  const resource = await read(named("resource_metadata"));
  expect(resource.resource).toBe(`${daemon.url}/mcp`);
  const [issuer] = resource.authorization_servers;
  return {
    challenge: named("scope"),
    resource,
    server: await read(`${issuer}/.well-known/oauth-authorization-server`),
  };
}

/**
 * Identifies the client by its metadata document if it has one and the server accepts it without a secret, otherwise by registration.
 * Returns its client_id.
 */
async function identify({ document, metadata }: McpClient, { server }: Found): Promise<string> {
  const takesDocuments =
    server.client_id_metadata_document_supported === true &&
    server.token_endpoint_auth_methods_supported.includes("none");
  if (document !== null) {
    expect(takesDocuments).toBe(true);
    return host.put(document, metadata);
  }
  const response = await fetch(server.registration_endpoint, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(metadata),
  });
  const registered = (await response.json()) as Json;
  expect([response.status, registered]).toEqual([
    201,
    expect.objectContaining({ redirect_uris: metadata.redirect_uris, token_endpoint_auth_method: "none" }),
  ]);
  expect(registered).not.toHaveProperty("client_secret");
  return registered.client_id;
}

const scopeOf = (scopes: AskedScopes, { challenge, resource }: Found): string | undefined =>
  ({ challenge, supported: resource.scopes_supported.join(" ") as string, none: undefined })[scopes ?? "none"];

function expectTokens({ status, headers, body }: TokenAnswer): void {
  expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
    200,
    "application/json",
    "no-store",
  ]);
  expect(body).toEqual({
    access_token: expect.stringMatching(/^oat-/),
    refresh_token: expect.stringMatching(/^ort-/),
    token_type: "Bearer",
    expires_in: 3600,
    scope: GRANT_SCOPES.join(" "),
  });
}

describe.each(MCP_CLIENTS)("$name", (client) => {
  let found: Found;
  let client_id: string;
  const grant = (redirect_uri: string) =>
    new CodeGrant(daemon, {
      client_id,
      redirect_uri,
      scope: scopeOf(client.scopes, found),
      resource: client.sendsResource ? found.resource.resource : undefined,
    });
  beforeAll(async () => {
    found = await discover();
    client_id = await identify(client, found);
  });

  test.each(client.redirects)("is authorized, redirected to %s, works, and refreshes", async (redirect_uri) => {
    const request = grant(redirect_uri);
    const page = await request.look(ada);
    const { host: place } = new URL(redirect_uri);
    expect([page.status, page.text]).toEqual([200, expect.stringContaining(client.metadata.client_name)]);
    expect(page.text).toContain(place);
    const back = await request.allow(ada);
    expect(back.href.slice(0, back.href.indexOf("?"))).toBe(redirect_uri);
    expect([...back.searchParams.keys()].sort()).toEqual(["code", "iss", "state"]);
    expect([back.searchParams.get("state"), back.searchParams.get("iss")]).toEqual([
      request.state,
      found.server.issuer,
    ]);
    const taken = await request.exchange(back.searchParams.get("code") ?? "");
    expectTokens(taken);
    expect((await call({ authorization: `Bearer ${taken.body.access_token}` })).status).toBe(200);
    const next = await request.refresh(taken.body.refresh_token);
    expectTokens(next);
    expect((await call({ authorization: `Bearer ${next.body.access_token}` })).status).toBe(200);
  });

  test.each(client.others)("is not redirected to %s, and the person gets the reason", async (redirect_uri) => {
    const request = grant(redirect_uri);
    const page = await request.look(ada);
    expect([page.status, page.to]).toEqual([400, null]);
    expect(page.text).toContain('role="alert"');
    const forced = await ada.api("POST", "/v1/account/grants", { request: request.query.toString() });
    expect(forced).toMatchObject({ status: 400, body: { details: { error: "invalid_redirect_uri" } } });
  });
});
