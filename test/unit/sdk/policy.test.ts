/** The policy of both SDKs: every case of `policy-cases.ts` with the SDK for TypeScript, and with that for Python, blocking and with asyncio. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Roomd, Sandbox } from "../../../sdk/typescript/src/index.ts";
import { PYTHON_SDK } from "../../harness/clients/python-tests.ts";
import { freePort } from "../../harness/free-port.ts";
import { CASES, type Fails, type PolicyCall, type PolicyCase, type SentRequest } from "./policy-cases.ts";
import { type Asked, problem, ScriptedService } from "./scripted-service.ts";

type CallOutcome = { value: unknown } | { error: Record<string, unknown> };
interface CaseRun {
  url: string;
  client: Record<string, unknown>;
  calls: readonly PolicyCall[];
  /** The result of every random number from 0 to 1. */
  random: number;
}
type Runner = (run: CaseRun) => Promise<CallOutcome[]>;
interface Played {
  url: string;
  outcomes: CallOutcome[];
  requests: Asked[];
  tookMs: number;
}
type Targets = Record<string, Record<string, (...args: unknown[]) => unknown>>;

/** Path of the service's URL. */
const BELOW = "/below";
/** Delay that a busy test host may add. */
const SLACK_MS = 1000;
const ERROR_FIELDS =
  "code status retryable hint requestId details errors fault url problems sandboxes build lastLines".split(" ");

async function runTypeScript({ url, client, calls, random }: CaseRun): Promise<CallOutcome[]> {
  const outcomes: CallOutcome[] = [];
  let roomd: Roomd | undefined;
  let last: unknown;
  vi.spyOn(Math, "random").mockReturnValue(random);
  for (const { do: name, args, options = {} } of calls) {
    try {
      roomd ??= new Roomd({ url, ...client });
      const room = roomd.rooms.open("a");
      const sandbox = room.sandbox("b");
      const targets = {
        ...roomd,
        room,
        sandbox,
        agent: room.agent("b"),
        execution: sandbox.execution("c"),
        Sandbox,
        last,
      };
      const path = name.split(".");
      const method = path.pop() as string;
      const target = path.reduce((found, each) => found[each] as unknown as Targets, targets as unknown as Targets);
      const connection = name.startsWith("Sandbox.") ? { url, ...client } : {};
      last = (target as unknown as Targets[string])[method]?.(...args.map(argumentOf), { ...connection, ...options });
      last = await finished(await last);
      outcomes.push({ value: jsonOf(last) });
    } catch (error) {
      const fields = ERROR_FIELDS.map((field) => [field, jsonOf((error as Record<string, unknown>)[field])]);
      const { name: kind, message } = error as Error;
      outcomes.push({ error: { ...Object.fromEntries(fields), name: kind, message } });
    }
  }
  vi.restoreAllMocks();
  roomd?.close();
  return outcomes;
}

/** A list of parts is sent as a stream. */
function argumentOf(arg: unknown): unknown {
  if (typeof arg !== "object" || arg === null || !("parts" in arg)) return arg;
  return (async function* () {
    for (const part of arg.parts as string[]) yield Buffer.from(part);
  })();
}

/** The result of a call, read to its end. */
async function finished(value: unknown): Promise<unknown> {
  if (typeof value !== "object" || value === null) return value;
  if (Symbol.asyncIterator in value) return await Array.fromAsync(value as AsyncIterable<unknown>);
  return "stream" in value && "text" in value ? await (value.text as () => Promise<string>)() : value;
}

function jsonOf(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (Array.isArray(value)) return value.map(jsonOf);
  if (typeof value !== "object" || value === null) return value ?? null;
  if (Object.getPrototypeOf(value) !== Object.prototype) return null;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, jsonOf(each)]));
}

/** A process that runs the cases with the SDK for Python. */
function startPython(isAsync: boolean) {
  const env = { PATH: process.env.PATH ?? "", PYTHONPATH: "src", PYTHONDONTWRITEBYTECODE: "1" };
  const child = spawn("python3", ["-m", "tests.policy"], { cwd: PYTHON_SDK, env, stdio: ["pipe", "pipe", "inherit"] });
  const printed = createInterface(child.stdout)[Symbol.asyncIterator]();
  const run: Runner = async (wanted) => {
    child.stdin.write(`${JSON.stringify({ ...wanted, isAsync })}\n`);
    const { value } = await printed.next();
    if (value === undefined) throw new Error("the Python runner has ended");
    return JSON.parse(value);
  };
  return { run, stop: () => void child.kill() };
}

/** The service of a case. */
async function serve({ service = "answers", replies }: PolicyCase) {
  const left = [...replies];
  const answer = () => (left.length > 0 ? (left.shift() ?? null) : problem(500, "internal", false));
  if (service === "answers") {
    const started = await ScriptedService.start(answer);
    return { url: started.url + BELOW, asked: () => started.asked, stop: () => started.stop() };
  }
  if (typeof service === "object" && "url" in service) return { url: service.url, asked: () => [], stop: () => {} };
  const port = await freePort();
  let late: ScriptedService | undefined;
  const start = async () => {
    late = await ScriptedService.start(answer, port);
  };
  const timer = service === "refuses" ? undefined : setTimeout(start, service.startsAfterMs);
  const stop = () => {
    clearTimeout(timer);
    late?.stop();
  };
  return { url: `http://127.0.0.1:${port}${BELOW}`, asked: () => late?.asked ?? [], stop };
}

async function play(each: PolicyCase, run: Runner): Promise<Played> {
  const { url, asked, stop } = await serve(each);
  const { calls, random = 0, client } = each;
  const startedAt = performance.now();
  const outcomes = await run({ url, client: { apiKey: "key-1", ...client }, calls, random });
  const tookMs = performance.now() - startedAt;
  stop();
  return { url, outcomes, requests: asked(), tookMs };
}

/** A letter for the key of each request, in the order of their first use. */
function keysOf(requests: readonly Asked[]): string {
  const keys = requests.map(({ headers }) => headers["idempotency-key"] as string | undefined);
  const used = [...new Set(keys.filter((key) => key !== undefined))];
  return keys.map((key) => (key === undefined ? "-" : "abcdef"[used.indexOf(key)])).join("");
}

function expectRequest({ method, path, headers, body }: Asked, expected: string | RegExp | SentRequest): void {
  const isLine = typeof expected === "string" || expected instanceof RegExp;
  const wanted: SentRequest = isLine ? { line: expected } : expected;
  expect(path.startsWith(BELOW)).toBe(true);
  expectText(`${method} ${path.slice(BELOW.length)}`, wanted.line);
  for (const [name, value] of Object.entries(wanted.headers ?? {})) expectText(headers[name] ?? null, value);
  if (wanted.body) expect(JSON.parse(body)).toMatchObject(wanted.body);
  for (const name of wanted.without ?? []) expect(JSON.parse(body)).not.toHaveProperty(name);
}

function expectText(text: unknown, expected: string | RegExp | null): void {
  if (expected instanceof RegExp) expect(text).toMatch(expected);
  else expect(text).toBe(expected);
}

function expectError(
  outcome: CallOutcome,
  { mentions = [], conceals = [], ...fields }: Fails,
  sdk: SdkName,
  url: string,
): void {
  expect(outcome).toHaveProperty("error");
  const { error } = outcome as { error: Record<string, unknown> };
  // Python has no class of its own for an invalid argument.
  const isUsage = sdk === "python" && ["RoomdError", "TypeError", "ValueError"].includes(String(error.name));
  const name = isUsage && fields.name === "UsageError" ? "UsageError" : error.name;
  expect({ ...error, name }).toMatchObject({ ...fields, ...(fields.url === "given" ? { url } : {}) });
  for (const text of mentions) expect(error.message).toContain(text);
  for (const text of conceals) expect(error.message).not.toContain(text);
}

const blocking = startPython(false);
const asyncio = startPython(true);
afterAll(() => {
  blocking.stop();
  asyncio.stop();
});

type SdkName = "typescript" | "python";
const SDKS: { name: string; sdk: SdkName; run: Runner; played: Map<PolicyCase, Played> }[] = [
  { name: "TypeScript", sdk: "typescript", run: runTypeScript, played: new Map() },
  { name: "Python", sdk: "python", run: blocking.run, played: new Map() },
  { name: "Python with asyncio", sdk: "python", run: asyncio.run, played: new Map() },
];

async function playAll({ sdk, run, played }: (typeof SDKS)[number]): Promise<void> {
  for (const each of Object.values(CASES).flat()) {
    if (each.lacks?.[sdk] === undefined) played.set(each, await play(each, run));
  }
}
// Most of the time is pauses. Ports are chosen at random, and the runner for TypeScript replaces the random numbers of this process.
beforeAll(async () => {
  const [first, ...others] = SDKS;
  await playAll(first as (typeof SDKS)[number]);
  await Promise.all(others.map(playAll));
}, 600_000);

describe.each(SDKS.map((each) => [each.name, each] as const))("the SDK for %s", (name, { sdk, played }) => {
  const leftOut = Object.groupBy(
    Object.values(CASES)
      .flat()
      .filter(({ lacks }) => lacks?.[sdk] !== undefined),
    ({ lacks }) => lacks?.[sdk] as string,
  );
  for (const [reason, cases = []] of Object.entries(leftOut)) {
    console.log(`${name}: ${cases.length} cases are left out, because ${reason}`);
  }
  describe.each(Object.entries(CASES))("%s", (_, cases) => {
    test.for(cases.map((each) => [each.name, each] as const))("%s", ([, each], context) => {
      const reason = each.lacks?.[sdk];
      if (reason !== undefined) return context.skip(reason);
      const { url, outcomes, requests, tookMs } = played.get(each) as Played;
      for (const [index, { gives, givesOf, fails }] of each.calls.entries()) {
        const outcome = outcomes[index] as CallOutcome;
        if (fails) expectError(outcome, fails, sdk, url);
        else expect(outcome).toHaveProperty("value");
        if (gives !== undefined) expect(outcome).toMatchObject({ value: gives });
        if (givesOf) expect(outcome).toMatchObject({ value: givesOf[sdk] });
      }
      if (each.keys !== undefined) expect(keysOf(requests)).toBe(each.keys);
      if (each.sends) expect(requests.map(({ method, path }) => `${method} ${path}`)).toHaveLength(each.sends.length);
      for (const [index, sent] of (each.sends ?? []).entries()) expectRequest(requests[index] as Asked, sent);
      for (const [index, pause] of (each.pausesMs ?? []).entries()) {
        const passed = (requests[index + 1]?.at ?? 0) - (requests[index]?.at ?? 0);
        expect(passed, `pause ${index + 1}`).toBeGreaterThanOrEqual(pause - 2);
        expect(passed, `pause ${index + 1}`).toBeLessThan(pause + SLACK_MS);
      }
      const [least, most] = each.tookMs ?? [0, Number.POSITIVE_INFINITY];
      expect(tookMs).toBeGreaterThanOrEqual(least);
      expect(tookMs).toBeLessThan(most);
    });
  });
});
