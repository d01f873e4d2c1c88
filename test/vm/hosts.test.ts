/** A real guest on one host, by way of the other: what its commands write, and its servers. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, type TestDaemon, whyNoGuests } from "../harness/daemon.ts";
import { ExposedPort } from "../harness/exposed-port.ts";
import { until } from "../harness/guests.ts";
import { TestHosts } from "../harness/hosts.ts";
import { connectMcp } from "../harness/mcp-client.ts";

const reason = whyNoGuests();
if (reason !== null) console.log(`hosts: left out, because ${reason}`);

describe.skipIf(reason !== null)("a guest of another host", () => {
  let service: TestHosts;
  let owner: TestDaemon;
  let other: TestDaemon;

  beforeAll(async () => {
    service = await TestHosts.start(2, { guests: true, env: { ROOMD_POOL_SIZE: "0" } });
    [owner, other] = service.hosts as [TestDaemon, TestDaemon];
    await until("each knows the other", async () => (await owner.ok("GET", "/v1/hosts")).items.length === 2);
    await owner.ok("POST", "/v1/rooms", { room_id: "r", host: "host-1" });
    await until("the other knows it", async () => (await other.api("GET", "/v1/rooms/r")).status === 200);
    await other.sandbox("r", "worker", 9140);
  }, 180_000);
  afterAll(() => service?.[Symbol.asyncDispose]());

  test("a command is run, and its output followed, by tools of the other", async () => {
    const mcp = await connectMcp(other, { key: owner.apiKey });
    const args = { room_id: "r", sandbox: "worker" };
    const quick = await mcp.call("sandbox_exec", { ...args, command: "echo out; echo err >&2; exit 3" });
    expect(quick).toMatchObject({ ok: true, result: { exit_code: 3, stdout: "out\n", stderr: "err\n" } });
    const command = "for n in 1 2 3; do echo $n; sleep 0.5; done";
    const begun = await mcp.call("sandbox_exec", { ...args, command, background: true });
    expect(begun.result).toMatchObject({ state: "running" });
    let told = String(begun.result.stdout ?? "");
    for (let next: Json = begun.result.next; next; ) {
      const page = await mcp.call("sandbox_exec", next.arguments);
      told += page.result.stdout ?? "";
      next = page.result.next;
    }
    expect(told).toBe("1\n2\n3\n");
    await mcp.close();
  });

  test("a server in it is reached, and its WebSockets", async () => {
    const record = await other.ok("POST", "/v1/rooms/r/sandboxes/worker/ports", { port: 8000, visibility: "private" });
    const port = new ExposedPort(other, "r/sandboxes/worker", record);
    await port.serve();
    const seen = await port.json("a%2Fb/?x=1", { method: "PUT", headers: { "x-own": "kept", "x-roomd-hop": "1" } });
    expect([seen.method, seen.target]).toEqual(["PUT", "/a%2Fb/?x=1"]);
    const headers = Object.fromEntries(seen.headers);
    expect(headers).toMatchObject({ host: "localhost:8000", "x-own": "kept", "x-forwarded-for": "127.0.0.1" });
    expect(Object.keys(headers).filter((name) => name.startsWith("x-roomd"))).toEqual([]);
    const bytes = await port.fetch("bytes?n=5000000");
    expect([bytes.status, bytes.headers.get("x-roomd-host")]).toEqual([200, "host-1"]);
    expect((await bytes.arrayBuffer()).byteLength).toBe(5_000_000);
    const socket = await port.socket("ws");
    socket.socket.send("hello");
    expect(await socket.next()).toBe("hello");
    socket.socket.close();
  });
});
