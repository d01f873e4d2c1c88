import { randomBytes } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

const LONG = process.env.ROOMD_TEST_LONG === "1";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2);
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

describe("two hosts of one service", () => {
  test("accept the same keys, and each forwards to the other's rooms", async () => {
    const made = await one.ok("POST", "/v1/rooms", { room_id: "on-one", host: "host-1" });
    expect(made.host).toBe("host-1");
    const { status, headers, body } = await two.api("GET", "/v1/rooms/on-one");
    expect(status).toBe(200);
    expect(headers.get("x-roomd-host")).toBe("host-1");
    expect(body).toMatchObject({ room_id: "on-one", room_uid: made.room_uid, host: "host-1" });
  });

  test("a room is created on the requested host through either one, and its name is unique in both", async () => {
    const made = await one.api("POST", "/v1/rooms", { room_id: "on-two", host: "host-2" });
    expect([made.status, made.body.host, made.headers.get("x-roomd-host")]).toEqual([201, "host-2", "host-2"]);
    expect((await two.ok("GET", "/v1/rooms/on-two")).host).toBe("host-2");
    for (const host of [one, two]) {
      expect((await host.problem("POST", "/v1/rooms", { room_id: "on-two" })).code).toBe("room_id_in_use");
    }
    expect((await one.problem("POST", "/v1/rooms", { room_id: "x", host: "host-9" })).code).toBe("validation_failed");
  });

  test("rooms without a requested host are spread over both, sequentially or concurrently, through either host", async () => {
    const make = async (host: TestDaemon, room_id: string) => (await host.ok("POST", "/v1/rooms", { room_id })).host;
    const after: string[] = [];
    for (let n = 0; n < 40; n++) after.push(await make(n % 2 === 0 ? one : two, `spread-${n}`));
    const together = await Promise.all(
      Array.from({ length: 40 }, (_, n) => make(n % 2 === 0 ? one : two, `many-${n}`)),
    );
    for (const hosts of [after, together]) {
      const first = hosts.filter((host) => host === "host-1").length;
      expect(Math.abs(first - 20), `${first} of 40 on host-1`).toBeLessThanOrEqual(6);
    }
  });

  test("a join is audited on the host that performed it", async () => {
    const records = async (host: TestDaemon) => {
      const { stdout } = await host.cli(["audit", "list", "--host", "--json"]);
      return (JSON.parse(stdout).items as { event: string; details: { host?: string } }[]).map(
        ({ event, details }) => `${event} ${details.host ?? ""}`,
      );
    };
    expect(await records(one)).toEqual(expect.arrayContaining(["host.joined host-1", "host.invited "]));
    expect(await records(two)).toContain("host.joined host-2");
  });

  test("messages and files pass through the other host unchanged", async () => {
    await one.ok("POST", "/v1/rooms", { room_id: "talk", host: "host-1" });
    for (const agent of ["a", "b"]) {
      await two.ok("PUT", `/v1/rooms/talk/agents/${agent}/subscriptions`, { topics: ["t"] });
    }
    const sent = await two.ok("POST", "/v1/rooms/talk/messages", { source: "a", destination: "b", payload: { n: 1 } });
    expect(sent.message_id).toMatch(/^msg_/);
    const received = await one.ok("GET", "/v1/rooms/talk/messages?agent_id=b");
    expect(JSON.stringify(received)).toContain(sent.message_id);
    if (!LONG) console.log("a file through the other host: of 3 MB; ROOMD_TEST_LONG=1 has one of 1 GiB");
    const url = `${two.url}/v1/rooms/talk/drive/files/deep/file.bin`;
    const headers = { authorization: `Bearer ${one.apiKey}` };
    const source = join(one.dataDir, "file-to-send");
    const sent256 = writeFile(source, LONG ? 1 << 30 : 3_000_001);
    expect((await fetch(url, { method: "PUT", headers, body: Bun.file(source) })).status).toBeLessThan(300);
    const had256 = new Bun.CryptoHasher("sha256");
    for await (const piece of (await fetch(url, { headers })).body ?? []) had256.update(piece);
    expect(had256.digest("hex")).toBe(sent256);
  }, 300_000);

  test("a call repeated through the other host is not executed again, and gets its answer", async () => {
    const make = (host: TestDaemon, name = "once") =>
      host.api(
        "POST",
        `/v1/orgs/${one.orgId}/keys`,
        { name, scopes: ["rooms:read"] },
        { "idempotency-key": "make-once" },
      );
    const first = await make(one);
    expect(first.status).toBe(201);
    const again = await make(two);
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([201, "true"]);
    expect(again.body.key_id).toBe(first.body.key_id);
    expect(again.body.key).toBe(first.body.key);
    expect((await make(two, "another")).body.code).toBe("idempotency_key_reused");
    const { items } = await two.ok("GET", `/v1/orgs/${one.orgId}/keys`);
    expect(items.filter(({ name }: { name: string }) => name === "once")).toHaveLength(1);
  });

  test("a key that is revoked on one host is invalid on the other", async () => {
    const made = await one.ok("POST", `/v1/orgs/${one.orgId}/keys`, { name: "short", scopes: ["rooms:read"] });
    const request = () => fetch(`${two.url}/v1/me`, { headers: { authorization: `Bearer ${made.key}` } });
    await until("the key is valid on the other host", async () => (await request()).status === 200);
    await one.ok("DELETE", `/v1/orgs/${one.orgId}/keys/${made.key_id}`);
    await until("the key is invalid on the other host", async () => (await request()).status === 401);
  });

  test("while the database is unavailable rooms continue, and shared state is not changed", async () => {
    await one.ok("POST", "/v1/rooms", { room_id: "goes-on", host: "host-1" });
    await until(
      "the other host knows the room",
      async () => (await two.api("GET", "/v1/rooms/goes-on")).status === 200,
    );
    await service.postgres.stop();
    expect((await two.api("GET", "/v1/rooms/goes-on")).status).toBe(200);
    await two.ok("PUT", "/v1/rooms/goes-on/agents/b/subscriptions", { topics: ["t"] });
    expect((await two.api("GET", "/v1/rooms/nobody-knows")).body.code).toBe("cluster_unavailable");
    const refused = await one.api("POST", "/v1/rooms", { room_id: "new", host: "host-1" });
    expect([refused.status, refused.body.code]).toEqual([503, "cluster_unavailable"]);
    expect(refused.headers.get("retry-after")).not.toBeNull();
    await service.postgres.begin();
    await until(
      "the host is back",
      async () => (await one.api("POST", "/v1/rooms", { room_id: "new", host: "host-1" })).status === 201,
    );
  });

  test("an unresponsive host serves none of its rooms, and the others report that", async () => {
    await two.ok("POST", "/v1/rooms", { room_id: "silent", host: "host-2" });
    await until("the other host knows the room", async () => (await one.api("GET", "/v1/rooms/silent")).status === 200);
    await two.end("SIGKILL");
    const { status, body } = await one.api("GET", "/v1/rooms/silent");
    expect([status, body.code]).toEqual([503, "host_unreachable"]);
    await two.serve();
    await until("the host is back", async () => (await one.api("GET", "/v1/rooms/silent")).status === 200);
  });
});

/** Writes a file of `bytes` random bytes. @returns its SHA-256 */
function writeFile(path: string, bytes: number): string {
  const hash = new Bun.CryptoHasher("sha256");
  const file = openSync(path, "w");
  try {
    for (let left = bytes; left > 0; ) {
      const piece = randomBytes(Math.min(left, 1 << 20));
      hash.update(piece);
      writeSync(file, piece);
      left -= piece.length;
    }
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}
