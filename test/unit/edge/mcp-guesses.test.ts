/**
 * Calls as models guess them: each succeeds at the latest by the second call, which is made of the first answer alone. The operations are
 * played: they hold their input against the rules of the interface, and remember rooms and sandboxes.
 */
import { describe, expect, test } from "vitest";
import type { Bound, Caller } from "../../../daemon/core/call/operation.ts";
import { NO_TRACES } from "../../../daemon/core/call/traces.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { ServiceError } from "../../../daemon/core/service-error.ts";
import { makeMcpDoor } from "../../../daemon/edge/mcp/door.ts";
import { brokenRules, makeInputCheck } from "../../../daemon/edge/pipeline/input.ts";
import type { Pipeline, PipelineReply, PipelineRequest } from "../../../daemon/edge/pipeline/pipeline.ts";
import { toProblem } from "../../../daemon/edge/pipeline/problem.ts";
import { AsidePool } from "../../../daemon/host/aside/pool.ts";
import { NONE } from "../../../shared/api/contract.ts";
import type { ToolSet } from "../../../shared/api/mcp/more-tools.ts";
import { operations } from "../../../shared/api/operations.ts";
import type { KeyId } from "../../../shared/ids.ts";
import type { Json } from "../../harness/daemon.ts";

const log = makeLog("error", () => {});
const OWN_ROOM = "mcp-9ABCDEFG";

/** Rooms by name, each with the agents that have a sandbox. */
class World {
  readonly rooms = new Map<string, Set<string>>();
  readonly files = new Map<string, string>();
  readonly asked: { name: string; fields: Json }[] = [];

  road(): Pipeline {
    return { run: (bound: Bound, request: PipelineRequest) => this.#run(bound, request) } as unknown as Pipeline;
  }

  async #run({ operation }: Bound, request: PipelineRequest): Promise<PipelineReply> {
    try {
      const { fields } = await request.body(Number.MAX_SAFE_INTEGER);
      const { input, bad } = makeInputCheck({ params: operation.params, query: NONE, body: operation.body }).check(
        request.params,
        {},
        fields,
      );
      if (bad.length > 0) throw brokenRules(bad);
      this.asked.push({ name: operation.name, fields: input });
      const body = this.#answer(operation.name, input);
      return { kind: "done", status: 200, done: { outcome: "ok", body }, location: null, replayed: false, rate: null };
    } catch (error) {
      const problem = toProblem(error, request.request_id, log);
      return {
        kind: "problem",
        status: problem.status,
        problem,
        retry_after_seconds: null,
        replayed: false,
        rate: null,
      };
    }
  }

  #answer(name: string, input: Json): Json {
    const { room_id, sandbox, agent_id } = input;
    if (name === "room_create" || name === "room_fork") this.rooms.set(room_id, new Set());
    const agents = this.rooms.get(room_id);
    if (room_id !== undefined && !agents) throw new ServiceError("room_not_found");
    if (name === "sandbox_create") agents?.add(agent_id);
    if (sandbox !== undefined && !agents?.has(sandbox)) {
      const hint = `Agents with a sandbox: ${[...(agents ?? [])].join(", ")}. {{sandbox_create}} creates one.`;
      throw new ServiceError("sandbox_not_found", { detail: `Room ${room_id} has no sandbox ${sandbox}.`, hint });
    }
    if (name === "sandbox_exec" && (input.argv === undefined) === (input.command === undefined)) {
      throw new ServiceError("invalid_command", { detail: "Send exactly one of argv and command." });
    }
    if (name === "fs_write") this.files.set(input.path, input.content);
    return {
      ...{ room_id, state: "running", sandbox_id: "sbx_1", agent_id, exec_id: "exe_1", exit_code: 0, stdout: "42\n" },
      ...{
        stderr: "",
        stdout_bytes: 3,
        stderr_bytes: 0,
        items: [],
        next_after: 0,
        next_cursor: null,
        path: input.path,
      },
      ...{ content: "hello\n", size_bytes: 6, offset: 0, length: 6, eof: true, url: "http://p/", token: "t", text: "" },
      ...{ snapshot_id: "snap_1", generation: 1 },
    };
  }
}

const bound = new Map(
  Object.values(operations).map((operation) => [operation.name, { operation } as unknown as Bound]),
);

async function callIn(world: World, set: ToolSet, name: string, args: object): Promise<Json> {
  const door = makeMcpDoor({
    bound,
    road: world.road(),
    aside: new AsidePool(null),
    traces: NO_TRACES,
    log,
    others: null,
    record: () => {},
  });
  const message = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: JSON.parse(JSON.stringify(args)) },
  };
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body: JSON.stringify(message) });
  const caller = { key_id: "kid_1", org_id: "org_1", name: "test", agent_id: null } as unknown as Caller;
  const visit = { caller, first_key_id: "kid_01KB3ZJ0C8V5Y6W7X89ABCDEFG" as KeyId, trace: null, authorization: null };
  const response = await door.answer({
    ...{ request, message, ...visit, ip: null, request_id: "req_1", bytes: 100, tool_set: set },
  });
  const text = await response.text();
  return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text).result;
}

/** The call that a model makes next, based on the refusal alone; null if the refusal gives no hint. */
function corrected(
  name: string,
  args: Json,
  { structuredContent: refusal }: Json,
): { name: string; args: Json } | null {
  if (refusal.nearest) return { name: refusal.nearest, args };
  if (refusal.code === "invalid_command") return { name, args: { ...args, command: "true" } };
  if (refusal.next) return { name: refusal.next.tool, args: refusal.next.arguments };
  const required = [...String(refusal.detail).matchAll(/(\w+) (?:is required|and|are required)/g)].map(
    (match) => match[1],
  );
  const VALUES: Json = {
    ...IN,
    command: "true",
    path: "/a",
    port: 8000,
    barrier_id: "b",
    name: "a",
    parties: 1,
    payload: 1,
    destination: "w",
    agent_id: "w",
  };
  if (required.length > 0) {
    return { name, args: { ...args, ...Object.fromEntries(required.map((field) => [field, VALUES[String(field)]])) } };
  }
  if (refusal.code === "sandbox_not_found") {
    const [, agent] = /Agents with a sandbox: (\w+)/.exec(String(refusal.hint)) ?? [];
    return agent ? { name, args: { ...args, sandbox: agent, agent: undefined, agent_id: undefined } } : null;
  }
  const [, takes] = /takes ([^.]+)\./.exec(String(refusal.hint)) ?? [];
  if (!takes) return null;
  const known = takes.split(", ");
  return { name, args: Object.fromEntries(Object.entries(args).filter(([field]) => known.includes(field))) };
}

const IN = { room_id: "r", sandbox: "w" };
const AT = { room: "r", agent: "w" };

/** Of the usual tools. */
const USUAL: [name: string, args: object][] = [
  ["room_create", {}],
  ["room_create", { name: "mine" }],
  ["room_create", { room: "mine", ttl: 3600 }],
  ["sandbox_create", { room_id: "r", agent_id: "a" }],
  ["sandbox_create", { room_id: "r", sandbox: "a" }],
  ["sandbox_create", { room_id: "r", agent: "a", memory: 512 }],
  ["sandbox_create", { room_id: "r", name: "a", template: "python" }],
  ["sandbox_create", { room_id: "r", agent_id: "a", guest_cid: 9100, memory_mib: 512, cpus: 1 }],
  ["sandbox_create", { room_id: "r", agent_id: "a", image: "python:3", environment: { A: "1" }, labels: '{"a":"b"}' }],
  ["sandbox_exec", { room_id: "r", agent_id: "w", command: "ls" }],
  ["sandbox_exec", { room_id: "r", agent: "w", cmd: "ls" }],
  ["sandbox_exec", { ...IN, cmd: "ls" }],
  ["sandbox_exec", { ...IN, command: "ls", timeout: 30 }],
  ["sandbox_exec", { ...IN, command: ["python3", "-c", "print(1)"] }],
  ["sandbox_exec", { ...IN, command: "python3", args: ["-c", "print(1)"] }],
  ["sandbox_exec", { ...IN, argv: "ls -la" }],
  ["sandbox_exec", { ...IN, argv: '["ls","-la"]' }],
  ["sandbox_exec", { ...IN, command: "ls", timeout_ms: "30000", workdir: "/tmp" }],
  ["sandbox_exec", { ...IN, command: "ls", working_directory: "/tmp", run_in_background: "true" }],
  ["sandbox_exec", { ...IN, command: "ls", description: "List the files" }],
  ["sandbox_exec", { ...IN, shell: "ls", env: '{"A":"1"}' }],
  ["sandbox_exec", { ...AT, script: "ls" }],
  ["sandbox_exec", { room_id: "r", sandbox: "main", command: "ls" }],
  ["sandbox_exec", IN],
  ["sandbox_exec", { sandbox: "w", command: "ls" }],
  ["agent_wait", { room_id: "r", agent_id: "w", timeout_ms: 5 }],
  ["agent_wait", { room_id: "r", agent: "w", timeout: 1 }],
  ["agent_wait", { room_id: "r", barrier_id: "b", arrivals_json: '["a","b"]' }],
  ["barrier_arrive", { room_id: "r", barrier_id: "b", agent_id: "w", parties: 1, wait_ms: 5 }],
  ["barrier_arrive", { room_id: "r", name: "b", agent: "w", parties: "1" }],
  ["fs_write", { room_id: "r", path: "/root/a.py", content: "print(1)" }],
  ["fs_write", { room_id: "r", file_path: "/a.json", content: { a: 1 } }],
  ["fs_write", { room: "r", filename: "a.txt", text: "hello" }],
  ["fs_read", { room_id: "r", file: "/a", max_bytes: "100" }],
  ["fs_list", { room_id: "r", directory: "/" }],
  ["agent_send", { room_id: "r", to: "w", message: "hi" }],
  ["agent_send", { room_id: "r", recipient: "w", text: "hi", from: "planner" }],
  ["agent_send", { room_id: "r", agent_id: "w", content: "hi" }],
  ["agent_request", { room_id: "r", to: "w", message: "hi", timeout: 2 }],
  ["agent_fanout", { room_id: "r", to: ["v", "w"], message: "hi" }],
  ["agent_fanout", { room_id: "r", to: "*", message: "hi" }],
  ["file_read", { room_id: "r", path: "/a" }],
  ["read_file", { room_id: "r", path: "/a" }],
  ["write_file", { room_id: "r", path: "/a", content: "x" }],
  ["list_files", { room_id: "r" }],
  ["sandbox_resume", { ...IN, command: "true" }],
  ["execute_command", { ...IN, command: "ls" }],
  ["run_code", { ...IN, command: "ls" }],
  ["bash", { ...IN, command: "ls" }],
  ["create_room", { room_id: "new" }],
  ["sandbox_expose_port", { ...AT, port: "8000" }],
  ["expose_port", { ...IN, port: 8000 }],
  ["send_message", { room_id: "r", to: "w", message: "hi" }],
  ["room_get", { name: "r" }],
  ["audit_list", { room: "r" }],
];

const SMALL: [name: string, args: object][] = [
  ["run", { command: "ls" }],
  ["run", { cmd: "ls", timeout: 5 }],
  ["run", { command: ["ls", "-la"] }],
  ["run", { code: "print(42)" }],
  ["run", { python: "print(42)" }],
  ["run", { code: "1+1", language: "javascript" }],
  ["run", { command: "ls", room_id: "r", sandbox: "w" }],
  ["run", {}],
  ["bash", { command: "ls" }],
  ["sandbox_exec", { command: "ls" }],
  ["write_file", { file_path: "/mnt/drive/a", content: "x" }],
  ["write_file", { path: "/root/a.py", text: "print(1)" }],
  ["read_file", { room: "r", filename: "/mnt/drive/a" }],
  ["view", { room: "r", path: "/mnt/drive/a" }],
  ["edit_file", { room: "r", path: "/mnt/drive/a", old_string: "hello", new_string: "bye" }],
  ["str_replace", { room: "r", path: "/mnt/drive/a", old_str: "hello", new_str: "bye" }],
  ["list_files", { room: "r", directory: "/mnt/drive" }],
  ["url", { port: "8000" }],
  ["close", {}],
  ["run", { code: "1+1", language: "js" }],
  ["run", { code: "1+1", lang: "Python3" }],
  ["run", { code: "ls", language: "sh" }],
  ["delete_file", { command: "rm /root/a" }],
];

const ALL: [name: string, args: object][] = [
  ["sandbox_fork", { ...IN, agents: ["a", "b"] }],
  ["sandbox_fork", { ...IN, names: ["a"] }],
  ["sandbox_fork", { ...IN, agents: '["a"]' }],
  ["sandbox_fork", { ...IN, count: 2 }],
  ["sandbox_rollback", { ...IN, snapshot: "snap_01KB3ZJ0C8V5Y6W7X89ABCDEFG" }],
  ["room_fork", { room_id: "r", name: "r2" }],
  ["message_send_many", { room_id: "r", messages: [{ from: "v", to: "w", message: "hi" }] }],
  ["sandbox_pause", IN],
  ["fork", { ...IN, agents: ["a"] }],
];

async function worldOf(): Promise<World> {
  const world = new World();
  world.rooms.set("r", new Set(["w"]));
  world.files.set("/a", "hello\n");
  return world;
}

describe.each([
  ["usual", USUAL],
  ["small", SMALL],
  ["all", ALL],
] as const)("of the %s tools", (set, guesses) => {
  test.each(guesses)("%s %j", async (name, args) => {
    const world = await worldOf();
    let [call, answer]: [{ name: string; args: Json } | null, Json] = [{ name, args }, null];
    for (let tries = 0; tries < 2 && call && (answer === null || answer.isError); tries++) {
      answer = await callIn(world, set, call.name, call.args);
      expect(Buffer.byteLength(answer.content[0].text)).toBeLessThanOrEqual(1000);
      call = answer.isError ? corrected(call.name, call.args, answer) : call;
    }
    expect(answer.structuredContent).toMatchObject({ ok: true });
  });
});

test.each([
  [{ agents: ["a", "b"] }, ["a", "b"]],
  [{ count: 2 }, ["w-1", "w-2"]],
  [{ copies: "2" }, ["w-1", "w-2"]],
])("copies %j are of these agents", async (given, agents) => {
  const world = await worldOf();
  await callIn(world, "all", "sandbox_fork", { ...IN, ...given });
  expect(world.asked.at(-1)?.fields.agents).toEqual(agents.map((agent_id) => ({ agent_id })));
});

test.each([
  ["create", "save"],
  ["restore", "back"],
  ["clone", "fork"],
])("a checkpoint's action %s is %s", async (action, meant) => {
  const { structuredContent } = await callIn(await worldOf(), "small", "checkpoint", { ...AT, action, name: "one" });
  expect(structuredContent.notes).toEqual([expect.stringMatching(new RegExp(`action ${action} .*${meant}`))]);
});

test("names all substituted arguments", async () => {
  const world = await worldOf();
  const { structuredContent } = await callIn(world, "usual", "sandbox_exec", { ...AT, cmd: "ls", timeout: 3 });
  expect(structuredContent.notes.sort()).toEqual([
    expect.stringMatching(/ agent .*sandbox$/),
    expect.stringMatching(/ cmd .*command$/),
    expect.stringMatching(/ room .*room_id$/),
    expect.stringMatching(/ timeout .*timeout_ms$/),
  ]);
  expect(world.asked.at(-1)?.fields).toMatchObject({ ...IN, command: "ls", timeout_ms: 3000 });
});

test("a drive file with a path of a guest is reported as the drive's", async () => {
  const { structuredContent } = await callIn(await worldOf(), "usual", "fs_write", {
    room_id: "r",
    path: "/root/a",
    content: "",
  });
  expect(structuredContent.notes).toEqual([expect.stringContaining("/mnt/drive/root/a")]);
});

test("a drive tool called with a sandbox names the tool for a sandbox's files", async () => {
  for (const [name, field] of [
    ["fs_read", "sandbox"],
    ["fs_write", "agent_id"],
  ] as const) {
    const args = { room_id: "r", path: "/a", ...(name === "fs_write" ? { content: "x" } : {}), [field]: "w" };
    const { structuredContent } = await callIn(await worldOf(), "usual", name, args);
    expect(structuredContent).toMatchObject({ code: "unknown_field", hint: expect.stringContaining("sandbox_exec") });
    expect(structuredContent.hint).toContain(`${name} takes room_id`);
  }
});

test("the small set creates its own room and sandbox, with the SDKs' lifetimes", async () => {
  const world = new World();
  const answer = await callIn(world, "small", "run", { command: "echo 42" });
  expect(answer.content[0].text).toMatch(/^exit 0\n42\n$/);
  const made = Object.fromEntries(world.asked.map(({ name, fields }) => [name, fields]));
  expect(made.room_create).toMatchObject({ room_id: OWN_ROOM, ttl_seconds: 86_400 });
  expect(made.sandbox_create).toMatchObject({
    ...{ room_id: OWN_ROOM, agent_id: "main", lifecycle: { idle_after_seconds: 900, on_idle: "hibernate" } },
  });
  expect(made.sandbox_exec).toMatchObject({ room_id: OWN_ROOM, sandbox: "main", command: "echo 42" });
});

test("the first change's preflight is small, and refusals have none", async () => {
  const world = await worldOf();
  const refused = await callIn(world, "usual", "room_get", { room_id: "none" });
  expect(refused.structuredContent.preflight).toBeUndefined();
  const made = await callIn(world, "usual", "room_create", {});
  expect(Buffer.byteLength(JSON.stringify(made.structuredContent.preflight))).toBeLessThanOrEqual(600);
});

test("more messages than one call accepts are rejected without checking each", async () => {
  const messages = Array.from({ length: 1001 }, () => ({ to: "w", message: "hi" }));
  const { structuredContent } = await callIn(await worldOf(), "all", "message_send_many", { room_id: "r", messages });
  expect(structuredContent).toMatchObject({ ok: false, status: 422 });
  expect(structuredContent.notes ?? []).toEqual([]);
});
