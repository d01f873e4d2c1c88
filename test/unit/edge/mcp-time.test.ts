/**
 * Duration of a tool call, by a clock of the test's: every tool of the list answers within 50 s, whatever the responses of the operations
 * that it calls, their delay, and their number.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Bound, Caller, EventsReply, StreamEvent } from "../../../daemon/core/call/operation.ts";
import { NO_TRACES } from "../../../daemon/core/call/traces.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { ServiceError } from "../../../daemon/core/service-error.ts";
import { makeMcpDoor } from "../../../daemon/edge/mcp/door.ts";
import type { Pipeline, PipelineReply, PipelineRequest } from "../../../daemon/edge/pipeline/pipeline.ts";
import { toProblem } from "../../../daemon/edge/pipeline/problem.ts";
import { AsidePool } from "../../../daemon/host/aside/pool.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import { outputSchemaOf, type Tool } from "../../../shared/api/mcp/tool.ts";
import { operations } from "../../../shared/api/operations.ts";
import type { KeyId } from "../../../shared/ids.ts";
import { rowOf, TOOL_LIST } from "../../harness/clients/tool-calls.ts";

/** Documented limit for clients. */
const PROMISED_MS = 50_000;
/** Longer than the wait of any operation. */
const MAX_WAIT_MS = 600_000;

const log = makeLog("error", () => {});

/** Behaviour of an operation in one call: it takes this time, or the requested wait, and then returns this result. */
interface Step {
  afterMs: number | "as asked" | "never";
  says: "done" | "going on" | "refused" | "starting";
}

const step: fc.Arbitrary<Step> = fc.record({
  afterMs: fc.oneof(fc.constantFrom<Step["afterMs"]>("as asked", "never", 0), fc.nat(60_000)),
  says: fc.constantFrom("done", "going on", "refused", "starting"),
});

/** A superset of all responses: each tool reads its own fields. */
const bodyOf = (says: Step["says"], { name }: Operation) => ({
  state: says === "done" ? "exited" : name.startsWith("barrier") ? "waiting" : "running",
  room_id: "r",
  sandbox_id: "sbx_1",
  exec_id: "exe_1",
  generation: 1,
  arrived: [],
  items: [],
  next_after: 0,
  oldest_seq: 7,
  default_memory_mib: 512,
  stdout_truncated: says === "going on",
  stderr_truncated: false,
});

function refusalOf({ errors }: Operation, says: Step["says"]): ServiceError {
  const waits = ["reply_timeout", "barrier_timeout", "history_gone", "execution_not_found"] as const;
  const own = waits.find((code) => errors.includes(code));
  if (says === "starting" || !own) return new ServiceError("invalid_state", { details: { state: "starting" } });
  return new ServiceError(own, { details: { generation: 1 } });
}

/** A command's output that continues without end, a piece every ten seconds, or is silent. */
function outputOf(says: Step["says"], follow: unknown): EventsReply {
  const cancelled = Promise.withResolvers<true>();
  const cancel = () => cancelled.resolve(true);
  async function* events(): AsyncGenerator<readonly StreamEvent[]> {
    for (let seq = 1; ; seq++) {
      const isSilent = says !== "going on" || follow === false;
      const isOver = await Promise.race([cancelled.promise, ...(isSilent ? [] : [after(10_000)])]);
      if (isOver) return;
      yield [{ id: seq, data: { seq, type: "stdout" }, data_b64: new Uint8Array(8) }];
    }
  }
  return { events: events(), cancel };
}

const after = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

/** A pipeline with operations that follow these steps, the last of them repeatedly; `counter` counts them. */
function roadOf(steps: readonly Step[], counter: { n: number }): Pipeline {
  const run = async ({ operation }: Bound, request: PipelineRequest): Promise<PipelineReply> => {
    const { fields } = await request.body(Number.MAX_SAFE_INTEGER);
    const { afterMs, says } = steps[Math.min(counter.n, steps.length - 1)] ?? { afterMs: "never", says: "done" };
    counter.n += 1;
    const wait = Number(fields.timeout_ms ?? fields.wait_ms ?? fields.wait_timeout_ms ?? MAX_WAIT_MS);
    if (afterMs === "never") await new Promise(() => {});
    await after(afterMs === "as asked" ? wait : Number(afterMs));
    if (says === "refused" || says === "starting") {
      const problem = toProblem(refusalOf(operation, says), request.request_id, log);
      return {
        ...{ kind: "problem", status: problem.status, problem, retry_after_seconds: null },
        ...{ replayed: false, rate: null },
      };
    }
    const events = operation.name === operations.execution_stream.name ? { events: outputOf(says, fields.follow) } : {};
    const done = { outcome: "ok", body: bodyOf(says, operation), ...events };
    return { kind: "done", status: 200, done: done as never, location: null, replayed: false, rate: null };
  };
  return { run } as unknown as Pipeline;
}

const bound = new Map(
  Object.values(operations).map((operation) => [operation.name, { operation } as unknown as Bound]),
);

/** Duration of a call by the test's clock, and the number of operations that it called. */
async function timeOf(tool: Tool, args: Record<string, unknown>, steps: readonly Step[]) {
  const counter = { n: 0 };
  const door = makeMcpDoor({
    bound,
    road: roadOf(steps, counter),
    aside: new AsidePool(null),
    traces: NO_TRACES,
    log,
    others: null,
    record: () => {},
  });
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool.name, arguments: args } };
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body: JSON.stringify(message) });
  const startedAt = performance.now();
  const caller = { key_id: "kid_1", org_id: "org_1", name: "test" } as unknown as Caller;
  const key = { caller, first_key_id: "kid_1" as KeyId, trace: null };
  const visit = { ...key, authorization: null, ip: null, request_id: "req_1", bytes: 100, tool_set: "usual" } as const;
  let tookMs: number | null = null;
  const answered = door
    .answer({ request, message, ...visit })
    .then((response) => response.text())
    .then((text) => {
      tookMs = performance.now() - startedAt;
      return text;
    });
  for (let waited = 0; tookMs === null && waited < PROMISED_MS; waited += 1000) await vi.advanceTimersByTimeAsync(1000);
  return { tookMs, asked: counter.n, text: tookMs === null ? "" : await answered };
}

const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }));

const schemas = new Map(TOOL_LIST.map((tool) => [tool, outputSchemaOf(tool)]));

/** The error of a refusal against the tool's own schema; null for any other response. */
function wrongIn(tool: Tool, text: string): string | null {
  const message = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  const content = message.result.structuredContent;
  if (content.ok || ajv.validate(schemas.get(tool) ?? false, content)) return null;
  return `${JSON.stringify(content)}: ${ajv.errorsText()}`;
}

/** Arguments with which a tool waits for as long as it can. */
function patient({ input }: Tool, args: Record<string, unknown>): Record<string, unknown> {
  const waits = ["timeout_ms", "wait_ms", "wait_timeout_ms"].flatMap((name) => {
    const most: unknown = input.properties[name]?.maximum;
    return typeof most === "number" ? [[name, most]] : [];
  });
  return { ...args, ...Object.fromEntries(waits) };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] });
});
afterEach(() => vi.useRealTimers());

describe.each(TOOL_LIST)("$name answers within 50 s", (tool) => {
  const row = rowOf(tool);
  const calls = [row.args("r"), ...(row.also_waits ?? [])].map((args) => patient(tool, args));

  test.each(calls)("if no operation ever responds: %j", async (args) => {
    const { tookMs, asked, text } = await timeOf(tool, args, [{ afterMs: "never", says: "done" }]);
    expect(asked).toBeGreaterThan(0);
    expect(tookMs).toBeLessThan(PROMISED_MS);
    expect(text).toContain('"isError":true');
    expect(wrongIn(tool, text)).toBeNull();
  });

  test.each<Step["says"]>(["done", "going on", "refused", "starting"])(
    "if all operations respond with %s",
    async (says) => {
      for (const afterMs of ["as asked", 0, 20_000] as const) {
        for (const args of calls)
          expect((await timeOf(tool, args, [{ afterMs, says }])).tookMs).toBeLessThan(PROMISED_MS);
      }
    },
  );

  test("for any responses at any time", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...calls),
        fc.array(step, { minLength: 1, maxLength: 6 }),
        async (args, steps) => {
          expect((await timeOf(tool, args, steps)).tookMs).toBeLessThan(PROMISED_MS);
        },
      ),
      { numRuns: 30 },
    );
  });
});

test("a running call is not repeated to the client if its arguments are long", async () => {
  const tool = TOOL_LIST.find(({ name }) => name === "sandbox_exec") as Tool;
  for (const [command, isRepeated] of [
    ["sleep 600", true],
    ["x".repeat(100_000), false],
  ] as const) {
    const args = patient(tool, { room_id: "r", sandbox: "s", command });
    const { text } = await timeOf(tool, args, [{ afterMs: "never", says: "done" }]);
    expect([text.includes('"next"'), text.length < 4_000]).toEqual([isRepeated, true]);
  }
});
