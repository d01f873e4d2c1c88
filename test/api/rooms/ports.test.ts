/** Exposed ports without a guest: records, tokens, limits, removal; proxied traffic is in test/vm/ports.test.ts. */
import type { Database } from "bun:sqlite";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { SandboxState } from "../../../shared/api/sandboxes.ts";
import type { Json, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, makeKey, overSocket, until } from "../calls.ts";
import { withFailedSandbox } from "../sandboxes/failed-sandbox.ts";

const SANDBOX = "/v1/rooms/r/sandboxes/worker-1";
const PORTS = `${SANDBOX}/ports`;
const DOMAIN = "ports.example";

let daemon: TestDaemon;
let rows: Database;

beforeAll(async () => {
  ({ daemon, rows } = await withFailedSandbox("worker-1", { ROOMD_PORTS_DOMAIN: DOMAIN }));
});
afterAll(async () => {
  rows?.close();
  await daemon.stop();
});

const setState = (state: SandboxState) => rows.run("UPDATE sandboxes SET state = ?", [state]);

/** A row as expose writes it: without a guest's supervisor no exposure outlives its call. */
function exposed(more: Partial<Record<string, string | number | null>> = {}): Json {
  const [sandbox] = rows.query("SELECT sandbox_id, org_id, room_uid, agent_id FROM sandboxes").all() as Json[];
  const row = {
    label: `web-${Math.random().toString(36).slice(2)}`,
    port: 8000,
    visibility: "private",
    wish: null,
    created_at: new Date().toISOString(),
    expires_at: null,
    ...sandbox,
    ...more,
  };
  const names = Object.keys(row);
  rows.run(
    `INSERT INTO ports (${names.join()}) VALUES (${names.map(() => "?").join()})`,
    Object.values(row) as string[],
  );
  return row;
}

beforeEach(() => {
  rows.run("DELETE FROM ports");
  setState("paused");
});

const listed = async (): Promise<Json[]> => (await daemon.ok("GET", PORTS)).items;
const first = async () => (await listed())[0];
const codeOf = async (path: string, headers: Record<string, string> = {}, method = "GET") => {
  const { status, body } = await bare(daemon, method, path, headers);
  return [status, body.code];
};

describe("expose", () => {
  test("by a key that expires lasts no longer than the key", async () => {
    const { key, key_id } = await makeKey(daemon, { expires_in_seconds: 3600 });
    const { items } = await daemon.ok("GET", "/v1/orgs/self/keys");
    const { expires_at } = items.find((each: Json) => each.key_id === key_id);
    const expose = (port: number, more: object = {}) =>
      daemon.api("POST", PORTS, { port, visibility: "public", ...more }, bearer(key));
    expect((await expose(8001)).body).toMatchObject({ port: 8001, expires_at });
    expect((await expose(8002, { expires_in_seconds: 7200 })).body).toMatchObject({ port: 8002, expires_at });
    const soon = (await expose(8003, { expires_in_seconds: 60 })).body.expires_at;
    expect(Date.parse(soon)).toBeLessThan(Date.parse(expires_at));
    expect((await daemon.ok("POST", PORTS, { port: 8004 })).expires_at).toBeNull();
  });

  test("with wait_ms waits that long for a server, and not if refused", async () => {
    const began = performance.now();
    const waited = await daemon.api("POST", PORTS, { port: 8000, wait_ms: 400 });
    expect([waited.status, waited.body.listening]).toEqual([201, false]);
    expect(performance.now() - began).toBeGreaterThan(390);
    exposed({ port: 8001, visibility: "public" });
    const refused = performance.now();
    const again = await daemon.api("POST", PORTS, { port: 8001, wait_ms: 20_000 });
    expect([again.status, again.body.code]).toEqual([409, "already_exists"]);
    expect(performance.now() - refused).toBeLessThan(10_000);
  });

  test.each<[string, object, string, string]>([
    ["a wait above the limit", { wait_ms: 50_001 }, "timeout_out_of_range", "wait_ms"],
    ["port 0", { port: 0 }, "port_out_of_range", "port"],
    ["port 65536", { port: 65_536 }, "port_out_of_range", "port"],
    ["half a port", { port: 1.5 }, "validation_failed", "port"],
    ["no port", { port: undefined }, "validation_failed", "port"],
    ["an unknown visibility", { visibility: "secret" }, "validation_failed", "visibility"],
    ["a label with dots", { label: "a.b" }, "validation_failed", "label"],
    ["a label of uppercase letters", { label: "Web" }, "validation_failed", "label"],
    ["a label with an invalid ending", { label: "web-" }, "validation_failed", "label"],
    ["a label that is too long", { label: "a".repeat(32) }, "validation_failed", "label"],
    ["no lifetime", { expires_in_seconds: 0 }, "validation_failed", "expires_in_seconds"],
    ["an unknown field", { ports: 1 }, "unknown_field", "ports"],
  ])("refuses %s", async (_, more, code, field) => {
    const problem = await daemon.problem("POST", PORTS, { port: 8000, ...more });
    expect(problem).toMatchObject({ status: 422, code });
    expect(problem.errors.map((each) => each.field)).toEqual([field]);
  });

  test.each(["failed", "destroying"] as const)("refuses a sandbox in the state %s", async (state) => {
    setState(state);
    expect(await daemon.problem("POST", PORTS, { port: 8000 })).toMatchObject({
      status: 409,
      code: "invalid_state",
      details: { state },
    });
  });

  test("returns a record with an unguessable URL and its token", async () => {
    const { status, body } = await daemon.api("POST", PORTS, { port: 8000, label: "web", expires_in_seconds: 60 });
    expect(status).toBe(201);
    const [, label] = /\/p\/(web-[a-z2-7]{26})\/$/.exec(body.path_url) ?? [];
    expect(body).toEqual({
      port: 8000,
      visibility: "private",
      path_url: `${daemon.url}/p/${label}/`,
      url: `https://${label}.${DOMAIN}`,
      token: expect.stringMatching(/^ptk_[\w-]{43}$/),
      listening: false,
      created_at: expect.any(String),
      expires_at: new Date(Date.parse(body.created_at) + 60_000).toISOString(),
      traffic: { connections: 0, open_connections: 0, sent_bytes: 0, received_bytes: 0, since: body.created_at },
    });
    const other = (await daemon.api("POST", PORTS, { port: 8001, label: "web", visibility: "public" })).body;
    expect(other).toMatchObject({ visibility: "public", token: null, expires_at: null });
    expect(other.path_url).not.toBe(body.path_url);
  });

  test("again returns the same record; with other settings it is refused", async () => {
    const row = exposed({ wish: "web" });
    const before = await first();
    for (const same of [{ port: 8000 }, { port: 8000, visibility: "private", label: "web", expires_in_seconds: 9 }]) {
      // There is no supervisor, so each call also unexposes it.
      const { status, body } = await daemon.api("POST", PORTS, same);
      expect([status, body]).toEqual([200, before]);
      await until(listed, (items) => items.length === 0);
      exposed(row);
    }
    for (const other of [{ visibility: "public" }, { label: "other" }]) {
      expect(await daemon.problem("POST", PORTS, { port: 8000, ...other })).toMatchObject({
        status: 409,
        code: "already_exists",
      });
    }
  });

  test("is limited to sixteen, not counting expired ones", async () => {
    const past = new Date(Date.now() - 1000).toISOString();
    exposed({ port: 7000, expires_at: past });
    for (let port = 8000; port < 8016; port++) exposed({ port });
    expect(await listed()).toHaveLength(16);
    expect(await daemon.problem("POST", PORTS, { port: 9000 })).toMatchObject({
      status: 429,
      code: "too_many_ports",
      details: { max: 16 },
    });
    await daemon.ok("DELETE", `${PORTS}/8003`);
    expect((await daemon.api("POST", PORTS, { port: 7000 })).status).toBe(201);
  });
});

describe("list, record and unexpose", () => {
  test("the list has tokens, the sandbox's record has not", async () => {
    exposed();
    const item = await first();
    const { token, listening, ...shown } = item;
    expect([token, listening]).toEqual([expect.stringMatching(/^ptk_/), false]);
    expect((await daemon.ok("GET", SANDBOX)).ports).toEqual([shown]);
  });

  test("unexpose removes the port", async () => {
    const { label } = exposed();
    expect(await daemon.ok("DELETE", `${PORTS}/8000`)).toEqual({ port: 8000, state: "unexposed" });
    expect(await daemon.problem("DELETE", `${PORTS}/8000`)).toMatchObject({ status: 404, code: "port_not_exposed" });
    expect(await codeOf(`/p/${label}/`)).toEqual([404, "port_not_exposed"]);
    expect((await daemon.problem("DELETE", `${PORTS}/70000`)).code).toBe("port_out_of_range");
  });

  test("another organization's port is not found", async () => {
    exposed();
    const { key } = await makeKey(daemon, { scopes: ["sandboxes:read"] });
    expect((await daemon.api("GET", PORTS, undefined, bearer(key))).body.details).toEqual({ required: "ports:write" });
  });

  test("exposing and unexposing are audited, without a token", async () => {
    await daemon.api("POST", PORTS, { port: 8000 });
    await until(listed, (items) => items.length === 0);
    const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?event=port.&order=desc&limit=5");
    const [closed, opened] = ["port.closed", "port.exposed"].map((event) =>
      items.find((each: Json) => each.event === event),
    );
    expect(opened).toMatchObject({ details: { port: 8000, visibility: "private" }, agent_id: "worker-1" });
    expect(closed).toMatchObject({ details: { port: 8000 }, agent_id: "worker-1", actor: { id: "ports" } });
    expect(JSON.stringify(items)).not.toContain("ptk_");
    const named = await daemon.ok("GET", "/v1/orgs/self/audit?event=port.closed&room_id=r&limit=1000");
    expect(named.items).toContainEqual(expect.objectContaining({ audit_id: closed.audit_id, room_id: "r" }));
  });
});

describe("the creator of a port", () => {
  const KEYS = "/v1/orgs/self/keys";

  test.each(["by the API", "by the operator"])(
    "includes rotations of its key: once it has ended %s the port is unreachable",
    async (how) => {
      const first = await makeKey(daemon);
      const { label } = exposed({ visibility: "public", ends_with: first.key_id });
      const other = exposed({ port: 8001, visibility: "public", ends_with: (await makeKey(daemon)).key_id });
      const reached = [502, "guest_unreachable"];
      const second = await daemon.ok("POST", `${KEYS}/${first.key_id}/rotate`, { grace_seconds: 0 });
      expect(await codeOf(`/p/${label}/`)).toEqual(reached);
      if (how === "by the API") {
        const { ended } = await daemon.ok("DELETE", `${KEYS}/${second.key_id}`);
        expect(ended).toMatchObject({ ports: 1 });
      } else expect((await daemon.cli(["key", "revoke", second.key_id])).status).toBe(0);
      expect(await codeOf(`/p/${label}/`)).toEqual([404, "port_not_exposed"]);
      expect((await listed()).map(({ port }) => port)).toEqual([8001]);
      expect(await codeOf(`/p/${other.label}/`)).toEqual(reached);
    },
  );

  test("is replaced by a key that exposes the port again, and not by a program in the sandbox", async () => {
    const [one, two] = [await makeKey(daemon), await makeKey(daemon)];
    const { label } = exposed({ ends_with: one.key_id });
    const again = await daemon.api("POST", PORTS, { port: 8000 }, bearer(two.key));
    expect([again.status, again.body.path_url]).toEqual([200, `${daemon.url}/p/${label}/`]);
    const [record] = (await daemon.ok("GET", "/v1/orgs/self/audit?event=port.exposed&limit=1")).items;
    expect(record.details).toMatchObject({ port: 8000, taken_over: true });
  });
});

describe("access", () => {
  const refusal = [502, "guest_unreachable"];

  test("requires the port's own token in a header, and no other credential", async () => {
    const { label } = exposed();
    const other = exposed({ port: 8001 });
    const [own, others] = await listed();
    const path = `/p/${label}/`;
    expect(await codeOf(path)).toEqual([401, "missing_credentials"]);
    expect(await codeOf(path, { "x-port-token": own.token })).toEqual(refusal);
    expect(await codeOf(path, { "x-port-token": others.token })).toEqual([401, "invalid_api_key"]);
    expect(await codeOf(`/p/${other.label}/`, { "x-port-token": own.token })).toEqual([401, "invalid_api_key"]);
    for (const wrong of [daemon.apiKey, `${own.token}x`, own.token.slice(0, -1), ""]) {
      expect(await codeOf(path, { "x-port-token": wrong })).toEqual([401, "invalid_api_key"]);
    }
    expect(await codeOf(path, bearer(daemon.apiKey))).toEqual([401, "missing_credentials"]);
    expect(await codeOf(path, bearer(own.token))).toEqual([401, "missing_credentials"]);
    expect(await codeOf("/v1/me", { ...bearer(own.token) })).toEqual([401, "invalid_api_key"]);
  });

  test("with wrong tokens is audited as a count", async () => {
    const { label } = exposed({ port: 8007 });
    for (let tries = 0; tries < 5; tries++) await codeOf(`/p/${label}/`, { "x-port-token": "ptk_wrong" });
    await daemon.restart("SIGTERM");
    // Without a supervisor the restarted daemon considers the sandbox ended, and unexposes its ports.
    await until(listed, (items) => items.length === 0);
    const { items } = await daemon.ok("GET", "/v1/rooms/r/audit?event=port.refused&order=asc");
    const own = items.filter((each: Json) => each.details.port === 8007);
    expect(own.map((each: Json) => each.details.count)).toEqual([1, 4]);
    expect(own[0]).toMatchObject({ outcome: "denied", agent_id: "worker-1", ip: "127.0.0.1", status: 401 });
  });

  test("to a public port requires no token; unknown labels are 404", async () => {
    const { label } = exposed({ visibility: "public" });
    expect(await codeOf(`/p/${label}/x`)).toEqual(refusal);
    for (const none of ["/p/nothing/", `/p/${label}x/`, `/p/${label.toUpperCase()}/`, "/p//", "/p/%2e/"]) {
      expect([none, ...(await codeOf(none))]).toEqual([none, 404, expect.stringMatching(/port_not_exposed|route/)]);
    }
    const { headers } = await bare(daemon, "GET", `/p/${label}/x`);
    expect([headers.get("x-request-id"), headers.get("cache-control")]).toEqual([
      expect.stringMatching(/^req_/),
      "no-store",
    ]);
  });

  test("to an expired port is 404, even while its row exists", async () => {
    const { label } = exposed({ visibility: "public", expires_at: new Date(Date.now() - 1).toISOString() });
    expect(await codeOf(`/p/${label}/`)).toEqual([404, "port_not_exposed"]);
  });

  test("with the token in the query sets a cookie for that path, which scripts cannot read", async () => {
    const { label } = exposed();
    const { token } = await first();
    const navigation: Record<string, string> = { "sec-fetch-mode": "navigate" };
    const request = (query: string, headers = navigation) =>
      fetch(`${daemon.url}/p/${label}/a%20b?${query}`, { redirect: "manual", headers });
    const answer = await request(`x=%2B&port_token=${token}&y`);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, `/p/${label}/a%20b?x=%2B&y`]);
    const [cookie = "", ...attributes] = (answer.headers.get("set-cookie") ?? "").split("; ");
    expect(attributes.sort()).toEqual(["HttpOnly", `Path=/p/${label}/`, "SameSite=Lax"]);
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(await codeOf(`/p/${label}/`, { cookie })).toEqual(refusal);
    expect(await codeOf(`/p/${label}/`, { cookie: `a=b; ${cookie}` })).toEqual(refusal);
    expect(await codeOf(`/p/${label}/`, { cookie: `x${cookie}` })).toEqual([401, "missing_credentials"]);
    const wrong = await request("port_token=ptk_wrong");
    expect([wrong.status, wrong.headers.get("set-cookie")]).toEqual([401, null]);
    // By HTTP to another host browsers send no fetch metadata.
    expect((await request(`port_token=${token}`, { "upgrade-insecure-requests": "1" })).status).toBe(303);
    // Programs have no cookie jar, and requests of a page's scripts follow no redirect of another origin.
    const others: Record<string, string>[] = [
      {},
      { "sec-fetch-mode": "cors" },
      { "sec-fetch-mode": "no-cors", "upgrade-insecure-requests": "1" },
    ];
    for (const headers of others) {
      const served = await request(`port_token=${token}`, headers);
      expect([served.status, served.headers.get("set-cookie")]).toEqual([502, null]);
    }
    expect(await codeOf(`/p/${label}?port_token=${token}`)).toEqual(refusal);
    // A request that would lose its body by a redirect is authorized directly.
    expect(await codeOf(`/p/${label}/?port_token=${token}`, {}, "POST")).toEqual(refusal);
  });

  test("without the trailing slash is redirected", async () => {
    const { label } = exposed({ visibility: "public" });
    const answer = await fetch(`${daemon.url}/p/${label}`, { redirect: "manual" });
    expect([answer.status, answer.headers.get("location")]).toEqual([308, `/p/${label}/`]);
  });

  test("by a host name of its own does not serve the API's paths", async () => {
    const { label } = exposed();
    const { token } = await first();
    const host = (name: string) => ({ host: `${name}.${DOMAIN}` });
    expect(await codeOf("/v1/me", { ...host(label), "x-port-token": token })).toEqual(refusal);
    expect(await codeOf("/", { ...host(label) })).toEqual([401, "missing_credentials"]);
    expect(await codeOf("/", { host: `${label.toUpperCase()}.${DOMAIN}:8443`, "x-port-token": token })).toEqual(
      refusal,
    );
    expect(await codeOf("/health", host("nothing"))).toEqual([404, "port_not_exposed"]);
    const answer = await fetch(`${daemon.url}//evil.example/?port_token=${token}`, {
      redirect: "manual",
      headers: { ...host(label), "sec-fetch-mode": "navigate" },
    });
    expect(answer.headers.get("location")).toMatch(`https://${label}.${DOMAIN}/`);
    expect(answer.headers.get("set-cookie")).toBe(
      `__Host-roomd_port_token=${token}; Path=/; HttpOnly; SameSite=Lax; Secure`,
    );
    expect((await codeOf("/health", { host: `a.b.${DOMAIN}` }))[0]).not.toBe(404);
  });

  test("from another site's page opens no WebSocket with the cookie, and registers no service worker", async () => {
    const { label } = exposed();
    const { token } = await first();
    const shaken = (origin: string | null, more: Record<string, string>) =>
      codeOf(`/p/${label}/`, {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        ...(origin === null ? {} : { origin }),
        ...more,
      });
    const cookie = { cookie: `roomd_port_token=${token}` };
    expect(await shaken("null", cookie)).toEqual([403, "source_mismatch"]);
    expect(await shaken("https://elsewhere.example", cookie)).toEqual([403, "source_mismatch"]);
    expect(await shaken(daemon.url, cookie)).toEqual(refusal);
    expect(await shaken(null, cookie)).toEqual(refusal);
    expect(await shaken("null", { "x-port-token": token })).toEqual(refusal);
    expect(await codeOf(`/p/${label}/sw.js`, { ...cookie, "service-worker": "script" })).toEqual([
      403,
      "source_mismatch",
    ]);
  });

  test("from another site's page or another port's page changes nothing with the cookie", async () => {
    const { label } = exposed();
    const { token } = await first();
    const host = `${label}.${DOMAIN}`;
    const post = (headers: Record<string, string>, method = "POST") =>
      codeOf("/", { host, cookie: `__Host-roomd_port_token=${token}`, ...headers }, method);
    const sibling = { origin: `https://other.${DOMAIN}` };
    const refused = [403, "source_mismatch"];
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      expect(await post(sibling, method)).toEqual(refused);
    }
    expect(await post({ origin: "null" })).toEqual(refused);
    expect(await post({ ...sibling, "sec-fetch-site": "same-site" })).toEqual(refused);
    // A page that wants to be named nowhere has the origin null for itself too.
    expect(await post({ origin: "null", "sec-fetch-site": "same-origin" })).toEqual(refusal);
    expect(await post({ origin: `https://${host}` })).toEqual(refusal);
    expect(await post({})).toEqual(refusal);
    expect(await post({ ...sibling, "x-port-token": token })).toEqual(refusal);
    expect(await post(sibling, "GET")).toEqual(refusal);
  });

  test("by a GET with a body is refused, because the body would be lost", async () => {
    const { label } = exposed({ visibility: "public" });
    const request = (rest: string) =>
      overSocket(daemon, `GET /p/${label}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${rest}`);
    expect(await request("Content-Length: 1\r\n\r\na")).toMatch(/^HTTP\/1.1 400 .*invalid_body/s);
    expect(await request("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")).toMatch(/^HTTP\/1.1 400 .*invalid_body/s);
    expect(await request("Content-Length: 0\r\n\r\n")).toMatch(/^HTTP\/1.1 502 /);
  });

  test.each([
    ["two Host headers", "Host: a\r\nX-A: b\r\n\r\n"],
    ["two Content-Length headers", "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"],
    ["Content-Length and Transfer-Encoding", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a list of lengths", "Content-Length: 3, 3\r\n\r\nabc"],
    ["a signed length", "Content-Length: +3\r\n\r\nabc"],
    ["an unknown transfer coding", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    ["a transfer coding with a space", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"],
    ["a folded header", "X-A: b\r\n c\r\n\r\n"],
    ["a bare line feed", "X-A: b\nX-C: d\r\n\r\n"],
    ["a NUL", "X-A: b\0c\r\n\r\n"],
    ["an oversized head", `X-A: ${"a".repeat(20_000)}\r\n\r\n`],
  ])("by a request with %s is refused by the daemon", async (_, rest) => {
    const { label } = exposed({ visibility: "public" });
    const answer = await overSocket(daemon, `POST /p/${label}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${rest}`);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(answer.match(/HTTP\/1/g)).toHaveLength(1);
  });
});

test("neither the token nor its hash is in the database, and its key is readable by root only", async () => {
  exposed();
  const { token } = await first();
  rows.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const bytes = readFileSync(join(daemon.dataDir, "roomd.db"));
  expect(bytes.includes(token)).toBe(false);
  expect(bytes.includes(new Bun.CryptoHasher("sha256").update(token).digest("hex"))).toBe(false);
  expect(statSync(join(daemon.dataDir, "port_token_key")).mode & 0o777).toBe(0o600);
});
