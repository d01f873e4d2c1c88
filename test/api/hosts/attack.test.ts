/** Attacks on several hosts through their shared parts: the listener for hosts, our headers, join tokens, the database. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerOf, type TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { differencesOf } from "../../harness/hosts/hosts-history.ts";
import { issue } from "../../harness/issued-certificate.ts";
import { secretsIn } from "../../harness/secrets.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;
let other: { org_id: string; api_key: string };

beforeAll(async () => {
  service = await TestHosts.start(2);
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  other = await one
    .api("POST", "/v1/orgs", { name: "other" }, { authorization: `Bearer ${one.operatorKey}` })
    .then(({ body }) => body);
  await one.ok("POST", "/v1/rooms", { room_id: "private", host: "host-1" });
  await until("both hosts know the room", async () => (await two.api("GET", "/v1/rooms/private")).status === 200);
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

interface Shown {
  cert: string;
  key: string;
}

const shownBy = ({ dataDir }: TestDaemon): Shown => ({
  cert: readFileSync(join(dataDir, "cluster/cert.pem"), "utf8"),
  key: readFileSync(join(dataDir, "cluster/key.pem"), "utf8"),
});

/** At the listener for hosts. */
function askAsHost(host: TestDaemon, shown: Shown | null, path: string, headers: Record<string, string>) {
  const tls = { ...shown, rejectUnauthorized: false };
  return fetch(`https://${host.env.ROOMD_CLUSTER_LISTEN}${path}`, { headers, tls } as RequestInit);
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe("the listener for hosts", () => {
  test("rejects strangers with or without a certificate, whatever their key", async () => {
    const stranger = await issue(["localhost"]);
    for (const shown of [null, stranger]) {
      await expect(askAsHost(one, shown, "/v1/rooms/private", bearer(one.apiKey))).rejects.toThrow();
    }
    expect((await askAsHost(one, shownBy(two), "/v1/rooms/private", bearer(one.apiKey))).status).toBe(200);
  });

  test("grants a member host nothing beyond the caller's key", async () => {
    const request = (headers: Record<string, string>) => askAsHost(one, shownBy(two), "/v1/rooms/private", headers);
    expect((await request(bearer(other.api_key))).status).toBe(404);
    expect((await request({})).status).toBe(401);
    expect((await request(bearer(one.operatorKey))).status).toBeGreaterThanOrEqual(400);
  });

  test("does not forward a forwarded request again", async () => {
    await two.ok("POST", "/v1/rooms", { room_id: "on-two", host: "host-2" });
    await until("the other host knows the room", async () => (await one.api("GET", "/v1/rooms/on-two")).status === 200);
    const answer = await answerOf(
      await askAsHost(one, shownBy(two), "/v1/rooms/on-two", { ...bearer(one.apiKey), "x-roomd-hop": "1" }),
    );
    expect([answer.status, answer.body.code]).toEqual([421, "misdirected"]);
  });
});

test("ignores internal headers from outside", async () => {
  const forged = {
    ...{ "x-roomd-hop": "1", "x-roomd-forwarded-for": "203.0.113.9", "x-roomd-source": "mcp" },
  };
  for (const host of [one, two]) {
    const label = `forged-${host.env.ROOMD_HOST_ID}`;
    const { status, headers } = await host.api("GET", "/v1/rooms/on-two", undefined, forged);
    expect([status, headers.get("x-roomd-host")]).toEqual([200, "host-2"]);
    const path = "/v1/rooms/private/agents/a/subscriptions";
    expect((await host.api("PUT", path, { topics: [label] }, forged)).status).toBeLessThan(300);
  }
  const { items } = await one.ok("GET", "/v1/rooms/private/audit?limit=100");
  expect(JSON.stringify(items)).not.toContain("203.0.113.9");
  expect(items.some(({ source }: { source: string }) => source === "mcp")).toBe(false);
});

describe("a join token", { timeout: 60_000 }, () => {
  const joins = async (token: string) => {
    const home = join(one.home, `j${Math.random().toString(36).slice(2)}`);
    const env = {
      ...{ ROOMD_DATA_DIR: join(home, "data"), ROOMD_RUNTIME_DIR: join(home, "run"), ROOMD_HOST_ID: "host-9" },
      ROOMD_CLUSTER_LISTEN: "127.0.0.1:1",
    };
    return await one.cli(["cluster", "join", token], undefined, env);
  };
  const newToken = async (host: TestDaemon) => (await host.cli(["cluster", "token"])).stdout.trim();

  test("is valid if complete, once, within an hour and for its service; its invitation is deleted after use", async () => {
    const token = await newToken(one);
    for (const bad of [
      token.slice(0, -1),
      `${token.slice(0, -1)}!`,
      `${token}' OR '1'='1`,
      "join-",
      token.toUpperCase(),
    ]) {
      const { status, stderr } = await joins(bad);
      expect([bad, status === 0, stderr]).toEqual([bad, false, expect.stringContaining("token")]);
    }
    expect((await joins(token)).status).toBe(0);
    expect(await service.postgres.sql("SELECT count(*) FROM roomd.invitations")).toBe("0");
    expect((await one.cli(["cluster", "remove", "host-9", "--force"])).status).toBe(0);
    expect((await joins(token)).status).not.toBe(0);
    const late = await newToken(one);
    await service.postgres.sql("UPDATE roomd.invitations SET expires_at = now()");
    expect((await joins(late)).status).not.toBe(0);
    expect(await service.postgres.sql("SELECT count(*) FROM roomd.leases WHERE host_id = 'host-9'")).toBe("0");
    await using elsewhere = await TestHosts.start(1);
    expect((await joins(await newToken(elsewhere.first))).status).not.toBe(0);
  });

  test("a host that is pointed at another service's database keeps its data", async () => {
    await using elsewhere = await TestHosts.start(1);
    const [{ dataDir }] = [two];
    await two.end("SIGTERM");
    const own = two.env.ROOMD_CLUSTER_URL;
    two.env.ROOMD_CLUSTER_URL = elsewhere.postgres.url("tcp");
    await two.serve();
    expect((await two.api("GET", "/v1/rooms/on-two")).status).toBe(200);
    expect((await two.api("POST", "/v1/rooms", { room_id: "astray", host: "host-2" })).status).toBe(503);
    const theirs = await fetch(`${two.url}/v1/me`, { headers: bearer(elsewhere.first.apiKey) });
    expect([theirs.status, dataDir]).toEqual([401, two.dataDir]);
    await two.end("SIGTERM");
    if (own) two.env.ROOMD_CLUSTER_URL = own;
    await two.serve();
    await until("the host places rooms again", async () => {
      return (await two.api("POST", "/v1/rooms", { room_id: "home", host: "host-2" })).status === 201;
    });
  });
});

test("a reader of the database gets no secret", async () => {
  const token = (await one.cli(["cluster", "token"])).stdout.trim();
  await one.ok("POST", `/v1/orgs/${one.orgId}/keys`, { name: "another", scopes: ["rooms:read"] });
  const tables = ["cluster", "changes", "rows", "leases", "invitations"];
  const texts = await Promise.all(tables.map((table) => service.postgres.sql(`SELECT t::text FROM roomd.${table} t`)));
  const text = texts.join("\n");
  expect(secretsIn("the database", text)).toEqual([]);
  for (const secret of [token, one.apiKey, one.operatorKey, other.api_key]) expect(text).not.toContain(secret);
  for (const { dataDir } of service.hosts) {
    const files = ["cluster/key.pem", "port-token.key"].map((name) => join(dataDir, name));
    for (const file of files) {
      const bytes = await Bun.file(file)
        .bytes()
        .catch(() => null);
      if (!bytes) continue;
      for (const form of ["base64", "base64url", "hex"] as const)
        expect(text).not.toContain(Buffer.from(bytes).toString(form));
    }
  }
  expect(text).not.toContain("PRIVATE KEY");
});

describe("caller-chosen text", { timeout: 60_000 }, () => {
  const NASTY = [
    "'; DROP SCHEMA roomd CASCADE; --",
    '"',
    "\\",
    "\\u0000",
    "\u0000",
    "\ud800",
    "\u2028",
    "𝄞",
    "$1",
    "%s",
  ];

  test("is never a statement, and text that the database cannot store affects no other call", async () => {
    const requests = NASTY.flatMap((nasty, index) => [
      one.api("POST", `/v1/orgs/${one.orgId}/keys`, { name: `k${nasty}`, scopes: ["rooms:read"] }),
      two.api("POST", "/v1/rooms", { room_id: `nasty-${index}`, labels: { a: nasty } }),
      one.api("POST", "/v1/rooms", { room_id: `plain-${index}` }),
    ]);
    const answers = await Promise.all(requests);
    expect(answers.filter(({ status }) => status >= 500).map(({ body }) => body)).toEqual([]);
    for (const [index] of NASTY.entries()) {
      expect((await two.ok("GET", `/v1/rooms/plain-${index}`)).state).toBe("active");
    }
    for (const host of service.hosts) {
      await until(
        "the copies equal the directory",
        async () => (await differencesOf(host, service.postgres)).length === 0,
      );
    }
  });

  test("may be large: labels of maximal size on many rooms", async () => {
    const labels = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`label${n}`, "\u{1f30a}".repeat(64)]));
    const made = await Promise.all(
      Array.from({ length: 120 }, (_, n) =>
        (n % 2 === 0 ? one : two).api("POST", "/v1/rooms", {
          room_id: `large-${n}`,
          host: `host-${(n % 2) + 1}`,
          labels,
        }),
      ),
    );
    expect([...new Set(made.map(({ status }) => status))]).toEqual([201]);
    for (const host of service.hosts) {
      await until(
        "the copies equal the directory",
        async () => (await differencesOf(host, service.postgres)).length === 0,
      );
    }
  });
});
