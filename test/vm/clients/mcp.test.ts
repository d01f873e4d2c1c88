/** Models' access to real guests: the tools over MCP, by agents that have nothing but the list of tools. */
import { beforeAll, expect, test } from "vitest";
import { connectMcp, type McpClient } from "../../harness/clients/mcp-client.ts";
import { callOf, inspect } from "../../harness/clients/mcp-inspector.ts";
import { ModelFreeAgent } from "../../harness/clients/model-free-agent.ts";
import { TOOL_LIST } from "../../harness/clients/tool-calls.ts";
import type { Json } from "../../harness/daemon.ts";
import { LONG, processesOf, shortOrLong, withGuests } from "../../harness/guests.ts";

/** Writes unpredictable bytes to standard output and to the drive alike. */
const TEN_MINUTES = `
import os, sys, time
end = time.monotonic() + 600
with open("/mnt/drive/long", "wb") as kept:
    while time.monotonic() < end:
        piece = os.urandom(4096)
        kept.write(piece)
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        time.sleep(0.25)
`;

/** A call of every tool that is refused while the run's two guests are there, and how. */
const REFUSALS: Record<string, { args: Record<string, unknown>; code: string }> = {
  health: { args: { colour: "red" }, code: "unknown_field" },
  usage: { args: { org_id: "org_none" }, code: "org_not_found" },
  room_list: { args: { limit: 0 }, code: "validation_failed" },
  room_create: { args: { room_id: "run" }, code: "room_id_in_use" },
  room_get: { args: { room_id: "none" }, code: "room_not_found" },
  room_destroy: { args: { room_id: "none" }, code: "room_not_found" },
  sandbox_create: { args: { room_id: "run", agent_id: "worker" }, code: "agent_id_in_use" },
  sandbox_exec: { args: { room_id: "run", sandbox: "worker", command: ":", cwd: "/none" }, code: "cwd_not_found" },
  sandbox_destroy: { args: { room_id: "run", sandbox: "third" }, code: "sandbox_not_found" },
  sandbox_expose_port: { args: { room_id: "run", sandbox: "worker", port: 0 }, code: "port_out_of_range" },
  sandbox_unexpose_port: { args: { room_id: "run", sandbox: "worker", port: 9 }, code: "port_not_exposed" },
  agent_send: {
    args: { room_id: "run", source: "planner", destination: "third", payload: 1 },
    code: "agent_not_found",
  },
  agent_request: {
    args: { room_id: "run", source: "planner", destination: "worker", payload: 1, timeout_ms: 1 },
    code: "reply_timeout",
  },
  agent_fanout: {
    args: { room_id: "run", source: "planner", destinations: ["worker", "third"], payload: 1 },
    code: "agent_not_found",
  },
  agent_wait: { args: { room_id: "run", agent_id: "worker", barrier_id: "none" }, code: "barrier_not_found" },
  barrier_arrive: {
    args: { room_id: "run", barrier_id: "alone", agent_id: "worker", parties: 2, timeout_ms: 1 },
    code: "barrier_timeout",
  },
  fs_write: { args: { room_id: "run", path: "/..", content: "" }, code: "invalid_path" },
  fs_list: { args: { room_id: "run", path: "/none" }, code: "path_not_found" },
  fs_read: { args: { room_id: "run", path: "/" }, code: "is_directory" },
  audit_list: { args: { room_id: "none" }, code: "room_not_found" },
  org_audit_list: { args: { raw: true, cursor: "edited" }, code: "invalid_cursor" },
};

/** The planner's and the worker's clients. */
const CREWS = [
  { planner: { generation: "2026", way: "http" }, worker: { generation: "v1", way: "stdio" } },
  { planner: { generation: "v1", way: "http" }, worker: { generation: "2026", way: "stdio" } },
] as const;
const crews = CREWS.slice(0, shortOrLong("crews of agents over MCP", 1, CREWS.length));

withGuests("over MCP", {}, (guests) => {
  const last = (results: Json[]): Json => results.at(-1);

  test.each(crews)("agents without a model complete a run with every tool: $planner and $worker", async (crew) => {
    const before = guests.daemon.leftovers();
    const [first, second] = [
      await connectMcp(guests.daemon, crew.planner),
      await connectMcp(guests.daemon, crew.worker),
    ];
    const planner = await ModelFreeAgent.meet(first, {
      room_id: "run",
      agent_id: "planner",
      guest_cid: 9110,
      sandbox: "planner",
      path: "/task.txt",
      port: 8000,
      barrier_id: "ready",
    });
    const worker = await ModelFreeAgent.meet(second, {
      room_id: "run",
      agent_id: "worker",
      guest_cid: 9111,
      sandbox: "worker",
      path: "/task.txt",
      barrier_id: "ready",
    });

    expect(last(await planner.use("health")).ready).toBe(true);
    expect(last(await planner.use("usage")).can_create).toEqual({ room: true, sandbox: true });
    await planner.use("room_create");
    expect(last(await planner.use("room_list")).items.map(({ room_id }: Json) => room_id)).toContain("run");
    const created = await Promise.all([
      planner.use("sandbox_create"),
      worker.use("sandbox_create", { memory_mib: 256 }),
    ]);
    expect(created.map((results) => results[0].memory_mib)).toEqual([expect.any(Number), 256]);

    await planner.use("fs_write", { content: "count to three\n" });
    const [inbox] = await Promise.all([
      worker.use("agent_wait", { agent_id: "worker", wait_ms: 20_000 }),
      planner.use("agent_send", { source: "planner", destination: "worker", payload: { path: "/task.txt" } }),
    ]);
    const [message] = last(inbox).items;
    expect(message).toMatchObject({ source: "planner", payload: { path: "/task.txt" } });
    const read = last(
      await worker.use("sandbox_exec", { argv_json: JSON.stringify(["cat", `/mnt/drive${message.payload.path}`]) }),
    );
    expect(read).toMatchObject({ exit_code: 0, stdout: "count to three\n" });

    const [replied] = await Promise.all([
      planner.use("agent_request", {
        source: "planner",
        destination: "worker",
        payload: "how many?",
        timeout_ms: 20_000,
      }),
      (async () => {
        const received = last(
          await worker.use("agent_wait", { agent_id: "worker", after: message.seq, wait_ms: 20_000 }),
        );
        const reply = { kind: "response", reply_to: received.items[0].message_id, payload: 3 };
        await worker.use("agent_send", { source: "worker", destination: "planner", ...reply });
      })(),
    ]);
    expect(last(replied).reply).toMatchObject({ source: "worker", payload: 3 });
    const sent = last(await planner.use("agent_fanout", { source: "planner", destination: "*", payload: "go" }));
    expect(sent.deliveries.map(({ agent_id }: Json) => agent_id)).toEqual(["worker"]);
    const received = last(await worker.use("agent_wait", { agent_id: "worker", after: sent.seq - 1, wait_ms: 20_000 }));
    expect(received.items.map(({ payload }: Json) => payload)).toEqual(["go"]);

    const met = await Promise.all([
      planner.use("barrier_arrive", { agent_id: "planner", parties: 2 }),
      worker.use("barrier_arrive", { agent_id: "worker", parties: 2 }),
    ]);
    expect(met.map((results) => last(results).state)).toEqual(["released", "released"]);

    await planner.use(
      "sandbox_exec",
      { command: "cd /mnt/drive && exec python3 -m http.server 8000", background: true },
      () => true,
    );
    const exposed = last(await planner.use("sandbox_expose_port", { visibility: "private" }));
    const waitForServer =
      "for i in $(seq 100); do curl -fsS http://127.0.0.1:8000/task.txt && exit 0; sleep 0.1; done; exit 1";
    expect(last(await planner.use("sandbox_exec", { command: waitForServer })).exit_code).toBe(0);
    const url = `${guests.daemon.url}${new URL(exposed.path_url).pathname}task.txt`;
    expect(await (await fetch(url, { headers: { "x-port-token": exposed.token } })).text()).toBe("count to three\n");
    expect(last(await planner.use("sandbox_unexpose_port")).state).toBe("unexposed");

    const listed = last(await worker.use("fs_list", { path: "/" }));
    expect(listed.items.map(({ path }: Json) => path)).toContain("/task.txt");
    expect(last(await worker.use("fs_read")).content).toBe("count to three\n");
    expect(last(await planner.use("room_get")).sandbox_count).toBe(2);

    const { summary } = last(await planner.use("audit_list"));
    expect(summary.text).toContain("run");
    expect(summary.outcomes).toMatchObject({ error: 0, denied: 0 });
    const { items } = last(await planner.use("audit_list", { raw: true }));
    expect(new Set(items.map(({ source }: Json) => source))).toContain("mcp");
    expect(last(await planner.use("org_audit_list")).summary.total).toBeGreaterThanOrEqual(summary.total);

    for (const { name } of TOOL_LIST) {
      const refusal = REFUSALS[name];
      if (!refusal) throw new Error(`${name} has no refusal here`);
      const codes = [planner, worker].map(async (agent) => (await agent.misuse(name, refusal.args)).code);
      expect({ name, codes: await Promise.all(codes) }).toEqual({ name, codes: [refusal.code, refusal.code] });
    }
    await worker.use("sandbox_destroy");
    expect(last(await planner.use("room_destroy", { drive: "delete" }))).toMatchObject({
      state: "destroyed",
      sandboxes_destroyed: ["planner"],
    });
    const every = TOOL_LIST.map(({ name }) => name).sort();
    expect([...planner.succeeded.union(worker.succeeded)].sort()).toEqual(every);
    expect([[...planner.refused].sort(), [...worker.refused].sort()]).toEqual([every, every]);
    await Promise.all([first.close(), second.close()]);
    expect(guests.daemon.leftovers()).toEqual(before);
  });

  let client: McpClient;
  const at = { room_id: "commands", sandbox: "worker" };
  const exec = async (args: Record<string, unknown>) => (await client.call("sandbox_exec", { ...at, ...args })).result;

  /** All results of a command, each by the `next` of the previous one. */
  async function toItsEnd(args: Record<string, unknown>): Promise<Json[]> {
    const results = [await exec(args)];
    for (let { next } = last(results); next; { next } = last(results)) {
      results.push((await client.call(next.tool, next.arguments)).result);
    }
    return results;
  }
  const bytesOf = (results: Json[], stream: "stdout_b64" | "stderr_b64") =>
    Buffer.concat(results.map((result) => Buffer.from(result[stream], "base64")));

  beforeAll(async () => {
    client = await connectMcp(guests.daemon);
    await client.call("room_create", { room_id: at.room_id });
  });

  test("a command for a starting sandbox waits until it is ready", async () => {
    const args = { room_id: at.room_id, agent_id: at.sandbox, guest_cid: 9112, memory_mib: 256, wait: "none" };
    const { result } = await client.call("sandbox_create", args);
    expect(["creating", "starting"]).toContain(result.state);
    expect(result.next.tool).toBe("sandbox_exec");
    expect((await exec({ command: "exit 3" })).exit_code).toBe(3);
  });

  test.each(["http", "stdio"] as const)("the inspector's command line runs a command over %s", async (way) => {
    const call = callOf("sandbox_exec", { ...at, command: "id -u; exit 3" });
    const { status, result, stderr } = await inspect(guests.daemon, { way, era: "modern" }, call);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(result.structuredContent.result).toMatchObject({ state: "exited", exit_code: 3, stdout_bytes: 2 });
    expect(result.content[0].text).toMatch(/^exit 3 · \d+\.\d s\n0\n$/);
  });

  test("a command that outlasts its call is followed to its end, runs once, without a lost byte", async () => {
    const line =
      "echo run >>/mnt/drive/runs; for i in $(seq 30); do echo out $i; echo err $i >&2; sleep 0.1; done; exit 7";
    const results = await toItsEnd({ command: line, wait_ms: 500 });
    expect(results.length).toBeGreaterThan(2);
    expect(results.slice(0, -1).map(({ state }) => state)).toEqual(results.slice(0, -1).map(() => "running"));
    expect(last(results)).toMatchObject({ state: "exited", exit_code: 7 });
    const numbers = Array.from({ length: 30 }, (_, index) => index + 1);
    expect(bytesOf(results, "stdout_b64").toString()).toBe(numbers.map((n) => `out ${n}\n`).join(""));
    expect(bytesOf(results, "stderr_b64").toString()).toBe(numbers.map((n) => `err ${n}\n`).join(""));
    expect((await exec({ command: "cat /mnt/drive/runs" })).stdout).toBe("run\n");
  });

  test("output above an answer's size is paged, with every byte once", async () => {
    const results = await toItsEnd({ command: "seq 20000; head -c 3000 /dev/zero >&2", max_output_bytes: 10_000 });
    const { next, ...first } = results[0];
    expect(first).toMatchObject({ state: "exited", exit_code: 0, stdout_bytes: 108_894, stderr_bytes: 3000 });
    expect(next).toMatchObject({
      tool: "sandbox_exec",
      arguments: { exec_id: first.exec_id, max_output_bytes: 10_000 },
    });
    const numbers = Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(bytesOf(results, "stdout_b64").toString()).toBe(numbers);
    expect(bytesOf(results, "stderr_b64").equals(Buffer.alloc(3000))).toBe(true);
    for (const { stdout_b64 } of results) expect(Buffer.from(stdout_b64, "base64").length).toBeLessThanOrEqual(10_000);
  });

  test("pages of text end at character boundaries", async () => {
    const command = "python3 -c \"print('aé€𝄞' * 1000, end='')\"";
    const results = await toItsEnd({ command, max_output_bytes: 1001 });
    expect(results.length).toBeGreaterThan(9);
    expect(results.map(({ stdout }) => stdout).join("")).toBe("aé€𝄞".repeat(1000));
  });

  test("standard input and signals reach a command in the background", async () => {
    const { exec_id, next, ...rest } = await exec({ argv: ["cat"], background: true });
    expect(rest).toMatchObject({ state: "running", exit_code: null, stdout: "" });
    const b64 = (text: string) => Buffer.from(text).toString("base64");
    let output = (await client.call(next.tool, { ...next.arguments, stdin_b64: b64("one\n"), wait_ms: 500 })).result;
    for (; output.stdout === ""; output = (await client.call(next.tool, output.next.arguments)).result);
    expect(output).toMatchObject({ state: "running", stdout: "one\n" });
    const closing = { ...output.next.arguments, stdin_b64: b64("two\n"), eof: true, wait_ms: 40_000 };
    const ended = await client.call(next.tool, closing);
    expect(ended.result).toMatchObject({ state: "exited", exit_code: 0, stdout: "two\n" });
    const sleeper = await exec({ command: "sleep 100", background: true });
    const killed = await exec({ exec_id: sleeper.exec_id, signal: "SIGTERM" });
    expect(killed).toMatchObject({ exec_id: sleeper.exec_id, state: "exited", exit_code: null, signal: "SIGTERM" });
    expect((await exec({ exec_id })).stdout).toBe("one\ntwo\n");
  });

  test.skipIf(!LONG)(
    "a stopped guest does not delay any tool's answer beyond 50 s",
    { timeout: 4 * 60_000 },
    async () => {
      const { sandbox_id } = await guests.daemon.ok("GET", `/v1/rooms/${at.room_id}/sandboxes/${at.sandbox}`);
      const [qemu = 0] = processesOf(guests.daemon, "qemu", sandbox_id);
      const { exec_id } = await exec({ command: "seq 9; sleep 600", background: true });
      const calls = [
        { name: "sandbox_exec", args: { command: "true" } },
        { name: "sandbox_exec", args: { command: "true", background: true } },
        { name: "sandbox_exec", args: { exec_id, after: 0 } },
        { name: "sandbox_exec", args: { exec_id, background: true } },
        { name: "sandbox_exec", args: { exec_id, signal: "SIGTERM" } },
        { name: "sandbox_expose_port", args: { port: 8000 } },
      ];
      process.kill(qemu, "SIGSTOP");
      try {
        const tookMs = calls.map(async ({ name, args }) => {
          const startedAt = performance.now();
          const { ok, code } = await client.call(name, { ...at, ...args });
          const ms = Math.round(performance.now() - startedAt);
          console.log(`${name} ${Object.keys(args)}: ${ok ? "ok" : code} after ${ms} ms`);
          return ms;
        });
        for (const ms of await Promise.all(tookMs)) expect(ms).toBeLessThan(50_000);
      } finally {
        process.kill(qemu, "SIGCONT");
      }
      expect((await exec({ command: "exit 4" })).exit_code).toBe(4);
    },
  );
  if (!LONG) console.log("over MCP: without a stopped guest; ROOMD_TEST_LONG=1 stops one");

  test.skipIf(!LONG)(
    "a command of ten minutes is followed by calls of less than 50 s",
    { timeout: 15 * 60_000 },
    async () => {
      const results: Json[] = [];
      let call: Json = {
        tool: "sandbox_exec",
        arguments: { ...at, argv: ["python3", "-c", TEN_MINUTES], timeout_ms: 1_200_000 },
      };
      while (call) {
        const startedAt = performance.now();
        results.push((await client.call(call.tool, call.arguments)).result);
        expect(performance.now() - startedAt).toBeLessThan(50_000);
        call = last(results).next;
      }
      expect(last(results)).toMatchObject({ state: "exited", exit_code: 0 });
      console.log(`${last(results).duration_ms} ms, ${results.length} calls, ${last(results).stdout_bytes} bytes`);
      const { result } = await client.call("fs_read", { room_id: at.room_id, path: "/long" });
      expect(bytesOf(results, "stdout_b64").toString("base64") === result.content_b64).toBe(true);
    },
  );
  if (!LONG) console.log("over MCP: without the command of ten minutes; ROOMD_TEST_LONG=1 runs it");
});
