/** A real guest on one host, used through the other: its commands' output, its servers, SSH; and its own move to the other host. */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MOVES } from "../../../daemon/domain/ssh/sessions.ts";
import { connectMcp } from "../../harness/clients/mcp-client.ts";
import { ended, run, SshClient, sshPort } from "../../harness/clients/ssh-client.ts";
import { SshScreen } from "../../harness/clients/ssh-screen.ts";
import { type Json, type TestDaemon, whyNoGuests } from "../../harness/daemon.ts";
import { ExposedPort } from "../../harness/exposed-port.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

const reason = whyNoGuests();
if (reason !== null) console.log(`hosts: left out, because ${reason}`);

describe.skipIf(reason !== null)("a guest of another host", () => {
  let service: TestHosts;
  let owner: TestDaemon;
  let other: TestDaemon;

  beforeAll(async () => {
    service = await TestHosts.start(2, { guests: true, env: { ROOMD_POOL_SIZE: "0" } });
    [owner, other] = service.hosts as [TestDaemon, TestDaemon];
    await until("both hosts know each other", async () => (await owner.ok("GET", "/v1/hosts")).items.length === 2);
    await owner.ok("POST", "/v1/rooms", { room_id: "r", host: "host-1" });
    await until("the other host knows the room", async () => (await other.api("GET", "/v1/rooms/r")).status === 200);
    await other.sandbox("r", "worker", 9140);
  }, 180_000);
  afterAll(() => service?.[Symbol.asyncDispose]());

  test("runs a command, with output, by tools of the other host", async () => {
    const mcp = await connectMcp(other, { key: owner.apiKey });
    const args = { room_id: "r", sandbox: "worker" };
    const quick = await mcp.call("sandbox_exec", { ...args, command: "echo out; echo err >&2; exit 3" });
    expect(quick).toMatchObject({ ok: true, result: { exit_code: 3, stdout: "out\n", stderr: "err\n" } });
    const command = "for n in 1 2 3; do echo $n; sleep 0.5; done";
    const started = await mcp.call("sandbox_exec", { ...args, command, background: true });
    expect(started.result).toMatchObject({ state: "running" });
    let output = String(started.result.stdout ?? "");
    for (let next: Json = started.result.next; next; ) {
      const page = await mcp.call("sandbox_exec", next.arguments);
      output += page.result.stdout ?? "";
      next = page.result.next;
    }
    expect(output).toBe("1\n2\n3\n");
    await mcp.close();
  });

  test("has its files written and read by tools of the other host", async () => {
    const mcp = await connectMcp(other, { key: owner.apiKey, tools: "small" });
    const location = { room: "r", agent: "worker", path: "/root/of other/é.txt" };
    const content = "first line\nlast line\n".repeat(2000);
    expect(await mcp.call("write_file", { ...location, content })).toMatchObject({ ok: true });
    const edited = await mcp.call("edit_file", { ...location, old: "first", new: "1st", all: true });
    expect(edited).toMatchObject({ ok: true, result: { replaced: 2000 } });
    const part = await mcp.result("read_file", { ...location, offset: 4, limit: 4 });
    expect(part.content[0].text).toMatch(/^line\n\[bytes 4 to 8 of 38,000; /);
    expect(await owner.sh("r", "worker", "wc -c '/root/of other/é.txt'")).toMatch(/^38000 /);
    expect(await mcp.call("read_file", { ...location, path: "/root/none" })).toMatchObject({ code: "path_not_found" });
    expect(await mcp.call("read_file", { ...location, path: "/root" })).toMatchObject({ code: "is_directory" });
    // A URL would resolve it, and the other host carry out another operation.
    for (const path of ["/../../../../sandboxes", "/root/../../etc/passwd", "/%2e%2e/../x"])
      expect(await mcp.call("write_file", { ...location, path, content: "x" })).toMatchObject({ code: "invalid_path" });
    expect(await mcp.call("read_file", { ...location, path: "/root/./of other//é.txt" })).toMatchObject({ ok: true });
    expect(await mcp.call("read_file", { ...location, offset: 38_000 })).toMatchObject({ ok: true });
    await mcp.close();
  });

  test("has a server that is reachable, including WebSockets", async () => {
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

  test("moves with its room to the other host and back, and keeps counting in memory", async () => {
    const sandbox = "/v1/rooms/r/sandboxes/worker";
    const run = async (command: string) => {
      const { stdout } = await other.ok("POST", `${sandbox}/exec`, { argv: ["sh", "-c", command], timeout_ms: 60_000 });
      return String(stdout).trim();
    };
    const counter = "n=0; while :; do n=$((n+1)); echo $n > /dev/shm/count; sleep 0.1; done";
    await run(`setsid sh -c '${counter}' > /dev/null 2>&1 & echo $! > /dev/shm/pid`);
    await other.ok("POST", `${sandbox}/snapshots`, { name: "before" });
    const snapshots = (await other.ok("GET", "/v1/rooms/r/snapshots")).items;
    const before = await other.ok("GET", sandbox);
    let count = 0;
    for (const host of ["host-2", "host-1"]) {
      const [from, to] = host === "host-2" ? [owner, other] : [other, owner];
      const gate = `/dev/shm/go-${host}`;
      const waits = {
        ...{ exec_id: `waits-${host}`, timeout_ms: 200_000 },
        argv: ["sh", "-c", `echo > ${gate}.begun; until [ -e ${gate} ]; do sleep 0.1; done; echo through`],
      };
      const waiting = other.api("POST", `${sandbox}/exec`, waits);
      await until(
        "the program has started",
        async () => (await run(`[ -e ${gate}.begun ] && echo yes; true`)) === "yes",
        30_000,
      );
      const moved = await owner.ok("POST", "/v1/rooms/r/move", { host });
      // A caller that waits for a command does not hold the room, and follows the command there.
      expect([(await waiting).status, (await waiting).body.code]).toEqual([503, "room_moving"]);
      expect(moved.sandboxes_ended).toEqual([]);
      console.log(`moved to ${host}: away for ${moved.away_ms} ms`);
      await until(
        "the sandbox runs on the other host",
        async () => (await owner.ok("GET", sandbox)).state === "running",
        60_000,
      );
      expect(existsSync(join(from.dataDir, "sandboxes", before.sandbox_id))).toBe(false);
      expect(existsSync(join(to.dataDir, "sandboxes", before.sandbox_id))).toBe(true);
      await run(`touch ${gate}`);
      expect((await other.ok("POST", `${sandbox}/exec`, waits)).stdout).toBe("through\n");
      const current = Number(await run("cat /dev/shm/count"));
      expect(current).toBeGreaterThan(count);
      count = current;
      await until("the sandbox counts on", async () => Number(await run("cat /dev/shm/count")) > count, 30_000);
      const { sandbox_id, agent_id, ports } = await owner.ok("GET", sandbox);
      expect({ sandbox_id, agent_id }).toEqual({ sandbox_id: before.sandbox_id, agent_id: "worker" });
      expect(ports.map(({ label }: Json) => label)).toEqual(before.ports.map(({ label }: Json) => label));
      expect((await owner.ok("GET", "/v1/rooms/r/snapshots")).items).toEqual(snapshots);
      expect(await run("echo x >> /mnt/drive/moved; wc -l < /mnt/drive/moved")).toBe(host === "host-2" ? "1" : "2");
    }
  }, 240_000);

  describe("by SSH", () => {
    const USER = "worker@r";
    const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
    let client: SshClient;
    let ssh_key_id: string;

    beforeAll(async () => {
      client = new SshClient(sshPort(other));
      ({ ssh_key_id } = await owner.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: client.publicKey }));
      await until("the key is known", async () => (await client.ssh(USER, ["true"])).status === 0);
    });
    afterAll(() => client?.[Symbol.dispose]());

    test("commands have their status, streams and signals, and a terminal its size", async () => {
      const done = await client.ssh(USER, ["cat; echo err >&2; exit 7"], "in");
      expect([done.status, done.stdout.toString(), done.stderr]).toEqual([7, "in", "err\n"]);
      const killed = await client.ssh(USER, ["kill -KILL $$"], "", ["-v"]);
      expect([killed.status, killed.stderr]).toEqual([255, expect.stringContaining("exit-signal")]);
      await using screen = new SshScreen(client, USER, { rows: 31, cols: 97 });
      await screen.until(/[#$] $/);
      screen.resize(40, 132);
      screen.type("until stty size | grep -q '40 132'; do sleep 0.1; done; stty size\r");
      await screen.until(/40 132\r\n/);
      screen.type("exit 9\r");
      expect(await screen.status).toBe(9);
      const { items } = await other.ok("GET", "/v1/rooms/r/audit?event=ssh.exec");
      expect(items[0]).toMatchObject({ source: "ssh", ip: "127.0.0.1", outcome: "success" });
    });

    test("files are transferred completely both ways", async () => {
      const bytes = randomBytes((process.env.ROOMD_TEST_LONG === "1" ? 64 : 8) * 1024 * 1024);
      const [there, back] = ["sent", "back"].map((name) => join(client.home, name)) as [string, string];
      writeFileSync(there, bytes);
      const far = `${USER}@127.0.0.1:/root/sent`;
      expect(await run("scp", [...client.options, "-q", there, far])).toMatchObject({ status: 0, stderr: "" });
      expect(await run("scp", [...client.options, "-q", far, back])).toMatchObject({ status: 0, stderr: "" });
      expect(digestOf(readFileSync(back))).toBe(digestOf(bytes));
    });

    test("the password of an SSH access is valid on both hosts, another is not", async () => {
      const { token, access_id } = await other.ok("POST", "/v1/rooms/r/sandboxes/worker/ssh-access", {});
      const loginStatus = async (password: string) => (await client.sshByPassword(USER, password, ["exit 4"])).status;
      expect(await loginStatus(token)).toBe(4);
      expect(await loginStatus(owner.apiKey)).toBe(4);
      expect(await loginStatus(`${token}x`)).toBe(255);
      await other.ok("DELETE", `/v1/rooms/r/sandboxes/worker/ssh-access/${access_id}`);
      expect(await loginStatus(token)).toBe(255);
    });

    test("a session is informed that the room moves, on either host, and the user can log in again", async () => {
      using near = new SshClient(sshPort(owner));
      const sitting = [near, client].map((each) => each.startAs(USER, owner.apiKey, ["echo begun; sleep 1000"]));
      const ends = sitting.map((each) => ended(each));
      await Promise.all(sitting.map((each) => new Promise((resolve) => each.stdout?.once("data", resolve))));
      for (const host of ["host-2", "host-1"]) await owner.ok("POST", "/v1/rooms/r/move", { host });
      for (const end of ends) {
        expect(await end).toMatchObject({ status: 255, stderr: expect.stringContaining(MOVES) });
      }
      await until("the users can log in again", async () => (await client.ssh(USER, ["true"])).status === 0, 60_000);
    }, 120_000);

    test("a session ends with its key and with the room's host, with a reason", async () => {
      const left = client.startAs(USER, owner.apiKey, ["echo begun; sleep 1000"]);
      const held = client.start(USER, ["echo begun; sleep 1000"]);
      const started = [left, held].map((each) => new Promise((resolve) => each.stdout?.once("data", resolve)));
      const [leftEnd, heldEnd] = [ended(left), ended(held)];
      await Promise.all(started);
      await owner.ok("DELETE", `/v1/orgs/self/ssh-keys/${ssh_key_id}`);
      expect(await heldEnd).toMatchObject({ status: 255, stderr: expect.stringContaining("no longer valid") });
      expect((await client.ssh(USER, ["true"])).stderr).toContain("Permission denied");
      await owner.end("SIGKILL");
      expect(await leftEnd).toMatchObject({ status: 255, stderr: expect.stringContaining("host-1") });
    });
  });
});
