/**
 * Applications identified by a metadata document at their own URL: a valid one, fetched over TLS and accepted, and all rejected variants.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DocumentHost, JSON_TYPE } from "../../fixtures/document-host.ts";
import { Visitor } from "../../harness/browser/visitor.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { freePort } from "../../harness/free-port.ts";
import { until } from "../../harness/guests.ts";
import { issue } from "../../harness/issued-certificate.ts";

const REDIRECT = "http://127.0.0.1:33418/callback";
const home = mkdtempSync(join(tmpdir(), "roomd-documents-"));

/** A document at a path, changed as a test wants it. Returns its URL. */
const put = (path: string, change: Json = {}, headers = JSON_TYPE, host = place) =>
  host.put(path, { client_name: "By document", redirect_uris: [REDIRECT], ...change }, headers);

let place: DocumentHost;
let untrusted: DocumentHost;
let daemon: TestDaemon;
let ada: Visitor;
beforeAll(async () => {
  const [issued, other] = [await issue(["localhost"]), await issue(["localhost"])];
  writeFileSync(join(home, "ca.pem"), issued.authority);
  place = new DocumentHost(await freePort(), issued);
  untrusted = new DocumentHost(await freePort(), other);
  daemon = await TestDaemon.start({
    env: { ROOMD_OAUTH_DOCUMENT_HOSTS: "localhost", NODE_EXTRA_CA_CERTS: join(home, "ca.pem") },
  });
  ada = await Visitor.owner(daemon);
});
afterAll(async () => {
  await daemon.stop();
  await place.stop();
  await untrusted.stop();
  rmSync(home, { recursive: true });
});

function asking(client_id: string) {
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    response_type: "code",
    client_id,
    redirect_uri: REDIRECT,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    state: "xyz",
  });
  return { client_id, verifier, query };
}
const consent = async (client_id: string, visitor = ada) => await visitor.see(`/authorize?${asking(client_id).query}`);

describe("a client metadata document", () => {
  test("describes the application, authorizes it, and is cached for a while", async () => {
    const request = asking(put("/good.json"));
    const page = await ada.see(`/authorize?${request.query}`);
    expect([page.status, page.text]).toEqual([200, expect.stringContaining("By document")]);
    const form = { request: request.query.toString(), gives: "all", rooms: "", lasts: "", do: "allow" };
    const { to } = await ada.send("/authorize", form);
    const code = new URL(to ?? "").searchParams.get("code") ?? "";
    const body = new URLSearchParams({
      grant_type: "authorization_code",
      client_id: request.client_id,
      code,
      code_verifier: request.verifier,
      redirect_uri: REDIRECT,
    });
    const tokens = (await (await fetch(`${daemon.url}/token`, { method: "POST", body })).json()) as Json;
    expect(tokens.access_token).toMatch(/^oat-/);
    const grants = (await ada.api("GET", "/v1/account/grants")).body.items;
    expect(grants).toEqual([expect.objectContaining({ client_name: "By document" })]);
    expect(place.asked.filter((path) => path === "/good.json")).toHaveLength(1);
  });

  test.each<[string, (path: string) => string, RegExp]>([
    ["that names another client", (path) => put(path, { client_id: "https://localhost/x" }), /names another client_id/],
    ["that does not exist", (path) => place.url(path), /answered with 404/],
    [
      "that is an HTML page",
      (path) => put(path, {}, { "content-type": "text/html" }),
      /content type application\/json/,
    ],
    [
      "that redirects",
      (path) => place.answer(path, () => Response.redirect(place.url("/good.json"))),
      /answered with 302/,
    ],
    [
      "that is not an object",
      (path) => place.answer(path, () => new Response("[]", { headers: JSON_TYPE })),
      /must be an object/,
    ],
    ["that is too large", (path) => put(path, { more: "x".repeat(70_000) }), /over 65536 bytes/],
    ["of a server with an untrusted certificate", (path) => put(path, {}, JSON_TYPE, untrusted), /cannot be read/],
    ["without redirect URIs", (path) => put(path, { redirect_uris: [] }), /redirect/],
    [
      "with a redirect URI that opens system settings",
      (path) => put(path, { redirect_uris: ["ms-settings:x"] }),
      /cannot begin with ms-settings:/,
    ],
  ])("%s is refused", async (name, stand, why) => {
    const page = await consent(stand(`/${name.replaceAll(" ", "-")}.json`));
    expect(page.text).toMatch(why);
    expect(page.text).not.toContain('value="allow"');
  });

  test.each([
    ["of an unlisted host", "https://example.com/client.json", /are not accepted/],
    ["without a path", "https://localhost/", /have a path/],
    ["with a user", "https://me@localhost/x.json", /must be absolute/],
    ["over plain HTTP", "http://localhost/x.json", /not registered/],
  ])("%s is not fetched", async (_, client_id, why) => {
    expect((await consent(client_id)).text).toMatch(why);
  });
});

describe("fetching", () => {
  test("a slow document delays no other user, and a third fetch of one user is refused", async () => {
    const held = Promise.withResolvers<void>();
    const slow = [1, 2].map((n) =>
      place.answer(`/slow-${n}.json`, () => held.promise.then(() => new Response("no", { status: 500 }))),
    );
    const waiting = slow.map((client_id) => consent(client_id));
    await until(
      "both documents are requested",
      () => place.asked.filter((path) => path.startsWith("/slow-")).length === 2,
    );
    expect((await consent(put("/third.json"))).status).toBe(429);
    // A cached document needs no fetch.
    expect((await consent(place.url("/good.json"))).text).toContain("By document");
    held.resolve();
    for (const page of await Promise.all(waiting)) expect(page.text).toContain("answered with 500");
    expect((await consent(place.url("/third.json"))).text).toContain("By document");
  });

  test("is limited per hour and client address, also for anonymous users", async () => {
    const before = place.asked.length;
    const statuses: number[] = [];
    for (let n = 0; n < 70; n++)
      statuses.push((await consent(place.url(`/none-${n}.json`), new Visitor(daemon))).status);
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
    expect(place.asked.length - before).toBeLessThanOrEqual(60);
  });
});
