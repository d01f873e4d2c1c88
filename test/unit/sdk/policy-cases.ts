/**
 * Table of the policy that both SDKs have: the replies of the service in order, the calls of the client, and the requests, pauses, results
 * and errors that follow. `policy.test.ts` runs every case with each SDK.
 */
import { BROKEN, CLOSED, JSON_TYPE, lines, ok, problem, type Reply, stalled } from "./scripted-service.ts";

/** An expected error. */
export interface Fails {
  /** Name of its class. */
  name: string;
  /** Values within its message. */
  mentions?: string[];
  /** Secrets that its message does not contain. */
  conceals?: string[];
  /** A field by its name; the URL `given` is that of the client. */
  [field: string]: unknown;
}

/** A call of a client, by the names of the SDK for TypeScript; the Python runner converts them. */
export interface PolicyCall {
  /** Path of the method: from `client`, `rooms`, `templates`, `Sandbox`, from objects of a room, or from the result of the `last` call. */
  do: string;
  args: unknown[];
  options?: Record<string, unknown>;
  /** The result, or the fields of it that matter; any if absent. */
  gives?: unknown;
  /** Fields of the result by SDK. */
  givesOf?: Record<"typescript" | "python", object>;
  fails?: Fails;
}

/** An expected request. */
export interface SentRequest {
  /** Method, path and query. */
  line: string | RegExp;
  /** Null is an absent header. */
  headers?: Record<string, string | RegExp | null>;
  /** Fields of the body that matter. */
  body?: object;
  /** Fields that the body does not have. */
  without?: string[];
}

export interface PolicyCase {
  name: string;
  /** By default the service answers; `refuses`: no program listens. */
  service?: "answers" | "refuses" | { startsAfterMs: number } | { url: string };
  /** In order; null is no response. A further request gets an error that is not retryable. */
  replies: (Reply | null)[];
  calls: PolicyCall[];
  /** Options of the client. */
  client?: Record<string, unknown>;
  /** A letter for the idempotency key of each request: equal letters for equal keys, - for none. */
  keys?: string;
  sends?: SentLine[];
  /** Least pause before each retry; a busy host may add to it. */
  pausesMs?: number[];
  /** Bounds of the duration. */
  tookMs?: [least: number, most: number];
  /** The random part of every backoff, of its maximum; 0 by default. */
  random?: number;
  /** The reason why an SDK cannot have the case. */
  lacks?: { typescript?: string; python?: string };
}

const ROOM = { room_id: "a" };
const PATH = "/v1/rooms/a";
const BOX = `${PATH}/sandboxes/b`;
const EXECUTION = { room_id: "a", sandbox: "b", exec_id: "c" };
const HTML = { "Content-Type": "text/html" };
const SOON = { waitMs: 200 };
const SOON_MS: [number, number] = [190, 3000];

const call = (operation: string, input: object, options = {}): PolicyCall => ({
  ...{ do: "client.call", args: [operation, input], options },
});
const create = (options = {}) => call("room_create", ROOM, options);
const get = (options = {}) => call("room_get", ROOM, options);
const created = (options = {}): PolicyCall => ({ ...create(options), gives: ROOM });
const follow = (options = {}, place = {}): PolicyCall => ({
  ...{ do: "client.events", args: ["execution_stream", { ...EXECUTION, ...place }], options },
});
const on = (method: string, ...args: unknown[]): PolicyCall => ({ do: method, args });
const using = (made: PolicyCall, options: Record<string, unknown>): PolicyCall => ({ ...made, options });
const fails = (made: PolicyCall, name: string, fields: Partial<Fails> = {}): PolicyCall => ({
  ...made,
  fails: { name, ...fields },
});
/** The cases by kind. */
export const CASES: Record<string, PolicyCase[]> = {};

type SentLine = string | RegExp | SentRequest;
/** A case; its expectation is often no more than the keys of its requests, or the requests. */
const row =
  (name: string) =>
  (
    replies: Reply | null | (Reply | null)[],
    calls: PolicyCall | PolicyCall[],
    expected: string | SentLine[] | Omit<PolicyCase, "name" | "replies" | "calls">,
  ): PolicyCase => ({
    name,
    replies: Array.isArray(replies) ? replies : [replies],
    calls: Array.isArray(calls) ? calls : [calls],
    ...(typeof expected === "string" ? { keys: expected } : Array.isArray(expected) ? { sends: expected } : expected),
  });
const times = (count: number, reply: Reply): Reply[] => Array.from({ length: count }, () => reply);

/** From a proxy before the service. */
const gateway = (status: number, headers: Record<string, string> = HTML): Reply => ({
  ...{ status, headers: { ...headers, "Retry-After": "0" }, text: "<h1>Bad gateway</h1>" },
});
const file = (text: string): Reply => ({ status: 200, headers: {}, text });
const busy = problem(503, "not_ready", true);
const limited = problem(429, "rate_limited", true);
const full = problem(429, "inbox_full", true);
const inProgress = problem(409, "idempotency_in_progress", true);
const moving = problem(503, "room_moving", true);
const roomGone = problem(404, "room_not_found", false);
const noPath = problem(404, "path_not_found", false);
const noHistory = problem(410, "history_gone", false);
const closing = (reply: Reply): Reply => ({ ...reply, headers: { ...reply.headers, Connection: "close" }, isLast: true });

const out = (seq: number, text = "") => ({ type: "stdout", seq, data_b64: Buffer.from(text).toString("base64") });
const err = (seq: number, text: string) => ({ ...out(seq, text), type: "stderr" });
const exit = (seq: number) => ({ type: "exit", seq, exit_code: 0, signal: null, timed_out: false, duration_ms: 1 });
const SILENT = stalled(200, { "Content-Type": "application/x-ndjson" }, '{"type":"ping"}\n');
const sandbox = (state: string, more = {}) =>
  ok({ room_id: "a", sandbox_id: "sbx_1", agent_id: "b", state, status: { message: "No guest." }, ...more });
const message = (seq: number, next_after = seq) => ok({ items: [{ message_id: `m-${seq}`, seq }], next_after });
const sequence = (...numbers: number[]) => numbers.map((seq) => ({ seq }));

const noService = { fault: "unreachable", url: "given", mentions: ["ROOMD_URL"] };

const INTERRUPTED = { retry: { after: "interrupted" } };
const NO_RETRY = { python: "it has no option `retry`" };

CASES.retries = [
  row("a transient failure is retried, whether the service, a proxy or the connection fails")(
    [busy, gateway(502), gateway(502, JSON_TYPE), BROKEN, CLOSED, ok(ROOM)],
    created(),
    "aaaaaa",
  ),
  row("a malformed refusal is retried like that of a proxy")([{ ...busy, text: "hello" }, ok(ROOM)], created(), "aa"),
  row("a call has six attempts")(times(7, busy), fails(create(), "UnavailableError", { code: "not_ready", status: 503 }), "aaaaaa"),
  row("a call has six attempts at a proxy without a service")(
    times(7, gateway(503)),
    fails(create(), "ConnectionError", { fault: "foreign", status: 503 }),
    "aaaaaa",
  ),
  row("a room that moves is awaited beyond six attempts")([...times(9, moving), ok(ROOM)], created(), "aaaaaaaaaa"),
  row("an error that is not retryable is final")(
    problem(500, "internal", false),
    fails(create(), "UnavailableError", { code: "internal", retryable: false }),
    "a",
  ),
  ...["barrier_timeout", "reply_timeout"].map((code) =>
    row(`the outcome of a wait is final: ${code}`)(problem(504, code, true), fails(create(), "UnavailableError", { code }), "a"),
  ),
  row("a malformed result is retried: it may be the rest of a truncated one")(
    [{ status: 200, headers: JSON_TYPE, text: "hello" }, ok(ROOM)],
    created(),
    "aa",
  ),
  row("a response without a type and a body is retried")([{ status: 200, headers: {}, text: "" }, ok(ROOM)], created(), "aa"),
  row("health of an unhealthy service is a result")(
    { status: 503, headers: JSON_TYPE, text: '{"status":"unavailable"}' },
    { ...call("health", {}), gives: { status: "unavailable" } },
    ["GET /health"],
  ),
  row("a call of a file is refused")([], fails(call("file_get", { room_id: "a", path: "b" }), "UsageError"), []),
  row("a GET has no key, and is retried")([busy, BROKEN, ok(ROOM)], { ...get(), gives: ROOM }, "---"),
  row("a stream of parts is sent once")(
    [BROKEN, ok({})],
    fails(on("room.drive.write", "/x", { parts: ["one", "two"] }), "ConnectionError", { fault: "broken" }),
    ["PUT /v1/rooms/a/drive/files/x"],
  ),
  ...(
    [
      ["a temporary refusal", busy, "UnavailableError", { code: "not_ready" }],
      ["a response of a proxy", gateway(503), "ConnectionError", { fault: "foreign", status: 503 }],
      ["a malformed result", { status: 200, headers: JSON_TYPE, text: "hello" }, "ConnectionError", { fault: "foreign" }],
      ["a malformed refusal", { ...busy, text: "hello" }, "ConnectionError", { fault: "foreign", status: 503 }],
    ] satisfies [string, Reply, string, object][]
  ).map(([what, reply, name, fields]) =>
    row(`with interruptions only, ${what} is final`)(reply, fails(create(INTERRUPTED), name, fields), {
      keys: "a",
      lacks: NO_RETRY,
    }),
  ),
  row("with interruptions only, a refused connection is final")([], fails(create(INTERRUPTED), "ConnectionError", noService), {
    service: "refuses",
    tookMs: [0, 900],
    random: 1,
    lacks: NO_RETRY,
  }),
  row("with interruptions only, every failure after an interruption is retried")([BROKEN, busy, ok(ROOM)], created(INTERRUPTED), {
    keys: "aaa",
    lacks: NO_RETRY,
  }),
  row("with interruptions only, a call whose retry cannot be recognized is final")(
    [BROKEN, ok({})],
    fails(call("room_destroy", ROOM, INTERRUPTED), "ConnectionError", { fault: "broken" }),
    { keys: "-", lacks: NO_RETRY },
  ),
  row("with a time for retries, their number has no limit")(
    [...times(8, busy), ok(ROOM)],
    created({ retry: { after: "any", forMs: 5000 } }),
    { keys: "aaaaaaaaa", lacks: NO_RETRY },
  ),
  row("with a time for retries, a call fails after it")(
    times(9, problem(503, "not_ready", true, "60")),
    fails(create({ retry: { after: "any", forMs: 400 } }), "UnavailableError"),
    { keys: "aa", tookMs: [399, 2000], lacks: NO_RETRY },
  ),
  row("with a time for retries, a refused connection is retried for it")(
    [],
    fails(create({ retry: { after: "any", forMs: 1500 } }), "ConnectionError", noService),
    { service: "refuses", tookMs: [1499, 3000], random: 0.5, lacks: NO_RETRY },
  ),
];

CASES.backoff = [
  row("doubles from half a second, multiplied by a random number")([...times(4, BROKEN), ok(ROOM)], created(), {
    random: 0.1,
    pausesMs: [50, 100, 200, 400],
    keys: "aaaaa",
  }),
  row("is the time that the service names, if it names one")([problem(429, "rate_limited", true, "1"), ok(ROOM)], created(), {
    pausesMs: [1000],
    keys: "ab",
  }),
  row("has a random part down to zero")([...times(5, BROKEN), ok(ROOM)], created(), { pausesMs: [0, 0, 0, 0, 0], keys: "aaaaaa" }),
  row("of a stream that is resumed starts at 100 ms")([lines(out(1)), lines(), lines(out(2)), lines(exit(3))], follow(), {
    pausesMs: [100, 200, 100],
    keys: "----",
  }),
];

CASES["idempotency keys"] = [
  row("a refused call is retried as a new call")([full, ok(ROOM)], created(), "ab"),
  row("a call in progress keeps its key, and is awaited beyond six attempts")(
    [BROKEN, ...times(10, inProgress), ok(ROOM)],
    created(),
    "aaaaaaaaaaaa",
  ),
  row("a call that may have been executed keeps its key at a rate limit, which is checked before the key")(
    [BROKEN, limited, full, limited, ok(ROOM)],
    created(),
    "aaabc",
  ),
  row("a key of the caller is kept")([limited, ok(ROOM)], created({ idempotencyKey: "mine" }), {
    keys: "aa",
    sends: ["mine", "mine"].map((key) => ({ line: "POST /v1/rooms", headers: { "idempotency-key": key } })),
  }),
  row("each call of a method has a key of its own, derived from the caller's")(
    [sandbox("starting"), sandbox("running")],
    using(on("room.createSandbox", "b"), { memoryMib: 256, idempotencyKey: "mine" }),
    [
      { line: `POST ${PATH}/sandboxes/from-template`, headers: { "idempotency-key": "mine-1" } },
      { line: /^GET /, headers: { "idempotency-key": null } },
    ],
  ),
  row("objects are named by the caller's key, alike in both SDKs")(
    [ok(ROOM), ok({}), ok({ messages: [] })],
    [
      using(on("rooms.create"), { idempotencyKey: "build-1" }),
      using(on("sandbox.start", "true"), { idempotencyKey: "build-1" }),
      {
        ...on("room.sendMany", [
          { destination: "w", payload: 1 },
          { destination: "w", payload: 1 },
        ]),
        options: { idempotencyKey: "build-1" },
      },
    ],
    [
      { line: "POST /v1/rooms", body: { room_id: "sdk-e844adc60c72d254b27e713b88e72a83" } },
      { line: `POST ${BOX}/executions`, body: { exec_id: "sdk-e844adc60c72d254b27e713b88e72a83" } },
      {
        line: `POST ${PATH}/messages/batch`,
        body: {
          messages: [{ message_id: "sdk-e844adc60c72d254b27e713b88e72a83-0" }, { message_id: "sdk-e844adc60c72d254b27e713b88e72a83-1" }],
        },
      },
    ],
  ),
];

const remove = on("room.drive.delete", "/x");
CASES["DELETE calls"] = [
  ...[BROKEN, CLOSED, gateway(502), gateway(504)].map((reply, index) =>
    row(`an object that is gone after an attempt with an unknown outcome was deleted by it (${index + 1})`)(
      [reply, problem(503, "not_ready", true), noPath],
      remove,
      "---",
    ),
  ),
  ...[limited, busy, gateway(503)].map((reply, index) =>
    row(`a missing object after a refused attempt is an error (${index + 1})`)(
      [reply, noPath],
      fails(remove, "NotFoundError", { code: "path_not_found" }),
      "--",
    ),
  ),
  row("a missing object after a refused connection is an error")(noPath, fails(remove, "NotFoundError"), {
    service: { startsAfterMs: 200 },
    random: 0.8,
    keys: "-",
  }),
  row("a missing object after an interrupted GET is an error")([BROKEN, roomGone], fails(get(), "NotFoundError"), "--"),
  row("a room, or a sandbox, that has ended is destroyed")(
    [roomGone, problem(404, "sandbox_not_found", false), problem(409, "room_destroying", false)],
    [on("room.destroy"), on("sandbox.destroy"), on("room.destroy")],
    [`DELETE ${PATH}`, `DELETE ${BOX}`, `DELETE ${PATH}`],
  ),
  row("a refused end is an error")(
    problem(403, "scope_missing", false),
    fails(on("sandbox.destroy"), "PermissionError", { code: "scope_missing" }),
    [`DELETE ${BOX}`],
  ),
];

CASES.timeouts = [
  ...[
    ["a response that does not start", null],
    ["a result that does not end", stalled(200, JSON_TYPE)],
    ["a refusal that does not end", stalled(409, { "Content-Type": "application/problem+json" })],
  ].map(([name, reply]) =>
    row(`bounds ${name}`)(reply as Reply | null, fails(create(SOON), "TimeoutError"), { tookMs: SOON_MS, keys: "a" }),
  ),
  row("has the alias timeoutMs")(null, fails(create({ timeoutMs: 200 }), "TimeoutError"), { tookMs: SOON_MS, keys: "a" }),
  row("bounds all attempts together")([BROKEN, BROKEN, null], fails(create({ waitMs: 400 }), "TimeoutError"), {
    tookMs: [390, 3000],
    random: 0.1,
    keys: "aaa",
  }),
  row("shorter than the pause before a retry makes the failure final")(
    problem(429, "rate_limited", true, "60"),
    fails(create({ waitMs: 20_000 }), "LimitError", { code: "rate_limited" }),
    { tookMs: [0, 5000], keys: "a" },
  ),
  row("bounds all calls of a method together")(
    times(9, problem(503, "not_ready", true, "0.3")),
    fails(using(on("room.createSandbox", "b"), { waitMs: 500 }), "UnavailableError"),
    { pausesMs: [300], keys: "aa" },
  ),
  row("may be longer than timers support")(
    [ok(ROOM), message(1), ok({ reply: { payload: 2 } }), ok({ state: "released", generation: 1 })],
    [
      created({ waitMs: 1e18 }),
      { ...on("agent.wait"), options: { waitMs: 1e18 }, gives: { seq: 1 } },
      { ...on("agent.request", "c", 1), options: { waitMs: 1e18 }, gives: { payload: 2 } },
      { ...on("agent.barrier", "c"), options: { waitMs: 1e18 }, gives: { state: "released" } },
    ],
    "a-bc",
  ),
  ...(
    [
      ["a command", [ok({}), SILENT], on("sandbox.exec", "true")],
      ["a command that was started before", [SILENT], on("execution.wait")],
      ["a file that is read", [stalled(200, {})], on("sandbox.files.read", "/x")],
      ["a file that is written", [null], on("sandbox.files.write", "/x", "x")],
      ["a list of files", [null], on("sandbox.files.list", "/x")],
      ["a stream of events", [SILENT], on("client.events", "org_events", { org_id: "self" })],
      ["a file of the drive", [stalled(200, {})], on("room.drive.read", "/x")],
      ["a sandbox that starts", [null], on("room.createSandbox", "b")],
    ] satisfies [string, (Reply | null)[], PolicyCall][]
  ).map(([name, replies, made]) =>
    row(`bounds ${name}, without an end of it`)(replies, fails({ ...made, options: SOON }, "TimeoutError"), {
      tookMs: SOON_MS,
      sends: replies.map(() => /^(GET|POST|PUT) /),
    }),
  ),
  row("bounds a template that is built")(
    [ok({ template_id: "t", build_id: "b" }), SILENT],
    fails({ ...on("templates.build", { template_id: "t" }), options: SOON }, "TimeoutError"),
    { tookMs: SOON_MS, keys: "a-", lacks: { python: "its `build` has no options of calls" } },
  ),
  ...(
    [
      ["exec", {}, 600_000],
      ["exec", { timeoutMs: 5 }, 5],
      ["exec", { commandTimeoutMs: 5 }, 5],
      ["exec", { timeoutMs: 0 }, 0],
      ["exec", { waitMs: 60_000 }, 600_000],
      ["start", {}, 0],
      ["start", { timeoutMs: 5 }, 5],
    ] as const
  ).map(([verb, options, timeout_ms]) =>
    row(`of the command: ${verb} with ${JSON.stringify(options)} is ${timeout_ms}`)(
      [ok({}), lines(exit(1))],
      { ...on(`sandbox.${verb}`, "true"), options },
      [
        { line: `POST ${BOX}/executions`, body: { command: "true", timeout_ms } },
        ...(verb === "exec" ? [`GET ${BOX}/executions/`].map((path) => new RegExp(`^${path}`)) : []),
      ],
    ),
  ),
];

const PROBLEMS: [status: number, code: string, name: string][] = [
  [400, "invalid_json", "InvalidRequestError"],
  [401, "unauthorized", "AuthenticationError"],
  [403, "forbidden", "PermissionError"],
  [404, "room_not_found", "NotFoundError"],
  [409, "already_exists", "ConflictError"],
  [410, "history_gone", "GoneError"],
  [412, "precondition_failed", "PreconditionError"],
  [413, "payload_too_large", "InvalidRequestError"],
  [422, "validation_failed", "InvalidRequestError"],
  [429, "quota_exceeded", "LimitError"],
  [500, "internal", "UnavailableError"],
  [503, "insufficient_capacity", "UnavailableError"],
];
CASES.errors = [
  ...PROBLEMS.map(([status, code, name]) =>
    row(`${status} is ${name}, with the fields of the problem`)(
      problem(status, code, false, "0", { of: "a" }),
      fails(create(), name, {
        ...{ code, status, retryable: false, hint: null, requestId: "req_1", details: { of: "a" }, errors: [] },
        mentions: [`${code}.`],
      }),
      "a",
    ),
  ),
  row("an answer of another server is not from roomd")(
    { status: 404, headers: HTML, text: "<h1>Nothing</h1>" },
    fails(create(), "ConnectionError", { fault: "foreign", status: 404, url: "given", mentions: ["404"] }),
    "a",
  ),
  row("a page of another server is not a result")(
    { status: 200, headers: HTML, text: "<h1>Hello</h1>" },
    fails(create(), "ConnectionError", { fault: "foreign", status: 200, url: "given" }),
    "a",
  ),
  ...[301, 307, 308].map((status) =>
    row(`a redirect is reported with its target and not followed: ${status}`)(
      { status, headers: { Location: "https://elsewhere.example/v1" }, text: "" },
      fails(create(), "ConnectionError", { fault: "foreign", status, mentions: ["https://elsewhere.example/v1"] }),
      "a",
    ),
  ),
  row("an interruption that lasts is reported as one")(times(6, BROKEN), fails(create(), "ConnectionError", { fault: "broken" }), "aaaaaa"),
  row("an interruption outranks the refused connections after it")(
    closing(BROKEN),
    fails(create(), "ConnectionError", { fault: "broken" }),
    "a",
  ),
  row("a missing file does not exist, and cannot be deleted")(
    times(5, noPath),
    [
      fails(on("room.drive.read", "/x"), "NotFoundError"),
      fails(on("sandbox.files.read", "/x"), "NotFoundError"),
      fails(on("sandbox.files.read", "x"), "UsageError"),
      { ...on("sandbox.files.exists", "/x"), gives: false },
      { ...on("sandbox.exists", "/x"), gives: false },
      { ...on("sandbox.files.delete", "/x"), gives: false },
    ],
    "-----",
  ),
  row("a sandbox runs, or does not, or is missing")(
    [sandbox("running"), sandbox("hibernated"), problem(404, "sandbox_not_found", false)],
    [true, false, false].map((gives) => ({ ...on("sandbox.isRunning"), gives })),
    "---",
  ),
];

CASES["first contact"] = [
  ...(
    [
      ["a call", "refuses", create()],
      ["a stream", "refuses", on("client.events", "room_events", ROOM)],
      ["a name that does not resolve", { url: "http://no-such-host.invalid:8080" }, create()],
    ] satisfies [string, PolicyCase["service"], PolicyCall][]
  ).map(([name, service, made]) =>
    row(`a client without any response reports a wrong URL after a second: ${name}`)([], fails(made, "ConnectionError", noService), {
      service,
      random: 0.5,
      tookMs: [990, 2000] as [number, number],
    }),
  ),
  row("a service that starts within the first second is reached")(
    ok(ROOM),
    { ...get(), gives: ROOM },
    { service: { startsAfterMs: 200 }, random: 0.8, sends: [`GET ${PATH}`] },
  ),
  row("a client with an earlier response makes six attempts at a refused connection")(
    closing(ok(ROOM)),
    [{ ...get(), gives: ROOM }, fails(create(), "ConnectionError", { fault: "unreachable" })],
    { random: 0.1, tookMs: [1550, 4000], keys: "-" },
  ),
  row("a create without a connection destroys no room, even if the service starts a moment later")(
    [],
    fails(on("Sandbox.create"), "ConnectionError", { fault: "unreachable" }),
    { service: { startsAfterMs: 1100 }, random: 1, sends: [] },
  ),
];

CASES["a request"] = [
  row("has the key, the program and the type, and the headers of its caller")(
    ok(ROOM),
    call("room_create", { room_id: "a", labels: { ü: "ö" } }, { headers: { "X-Of-Mine": "1" } }),
    [
      {
        line: "POST /v1/rooms",
        headers: {
          ...{ authorization: "Bearer key-1", "content-type": "application/json", accept: "application/json" },
          ...{ "x-of-mine": "1", "user-agent": /^roomd-sdk/, traceparent: null },
        },
        body: { room_id: "a", labels: { ü: "ö" } },
      },
    ],
  ),
  row("continues the trace of its client")(ok(ROOM), get(), {
    client: { traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` },
    sends: [{ line: `GET ${PATH}`, headers: { traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01` } }],
  }),
  row("has the key without the space around it")(ok(ROOM), get(), {
    client: { apiKey: " key-1\n" },
    sends: [{ line: `GET ${PATH}`, headers: { authorization: "Bearer key-1" } }],
  }),
  ...["a\nb", "a b", "schlüssel", "a\x00"].map((apiKey) =>
    row(`is not sent with an invalid key: ${JSON.stringify(apiKey)}`)([], fails(get(), "UsageError", { conceals: [apiKey] }), {
      client: { apiKey },
      sends: [],
    }),
  ),
  ...["http://a b", "http://a:99999", "ftp://a", "a.example"].map((url) =>
    row(`is not sent to an invalid URL: ${url}`)([], fails(get(), "UsageError"), { service: { url }, sends: [] }),
  ),
  row("is not sent to a URL with a line break")([], fails(get(), "UsageError"), {
    service: { url: "http://a/b\nc" },
    lacks: { typescript: "its URL parser removes line breaks" },
  }),
  ...[{ headers: { X: "a\nb" } }, { headers: { "a b": "x" } }, { idempotencyKey: "a\r\nb" }].map((options) =>
    row(`is not sent with an invalid header: ${JSON.stringify(options)}`)([], fails(create(options), "UsageError"), []),
  ),
  ...["..", ".", "/../../rooms", "a/../b", "/a/.", "./a"].map((path) =>
    row(`is not sent with a path that leads elsewhere: ${path}`)(
      [],
      [
        fails(on("room.drive.read", path), "UsageError"),
        fails(on("room.drive.write", path, "x"), "UsageError"),
        ...(path.includes("/") ? [] : [fails(call("room_get", { room_id: path }), "UsageError")]),
      ],
      [],
    ),
  ),
  row("has the characters of its path encoded")(
    times(3, file("x")),
    ["..a", "a..", "%2e%2e"].map((path) => ({ ...on("room.drive.read", path), gives: "x" })),
    ["..a", "a..", "%252e%252e"].map((path) => `GET ${PATH}/drive/files/${path}`),
  ),
];

CASES.pages = [
  row("are read to the last, one after another")(
    [ok({ items: [1, 2], next_cursor: "more" }), ok({ items: [3], next_cursor: null })],
    { do: "client.items", args: ["room_list", { limit: 2 }], gives: [1, 2, 3] },
    ["GET /v1/rooms?limit=2", "GET /v1/rooms?limit=2&cursor=more"],
  ),
  row("are retried each")(
    [busy, ok({ items: [1], next_cursor: "more" }), BROKEN, ok({ items: [2] })],
    { do: "client.items", args: ["room_list", {}], gives: [1, 2] },
    ["GET /v1/rooms", "GET /v1/rooms", "GET /v1/rooms?cursor=more", "GET /v1/rooms?cursor=more"],
  ),
  row("may be empty before the last")(
    [ok({ items: [], next_cursor: "more" }), ok({ items: [1], next_cursor: null })],
    { do: "client.items", args: ["room_list", {}], gives: [1] },
    ["GET /v1/rooms", "GET /v1/rooms?cursor=more"],
  ),
  row("of a directory are requested with its path")(
    [ok({ items: [{ name: "one" }], next_cursor: "c" }), ok({ items: [{ name: "two" }], next_cursor: null })],
    { ...on("sandbox.files.list", "/x"), gives: [{ name: "one" }, { name: "two" }] },
    [/^GET \/v1\/rooms\/a\/sandboxes\/b\/files\?path=%2Fx$/, /[?&]path=%2Fx&cursor=c$/],
  ),
  row("of several rooms are not read beyond an error")(
    [ok({ items: [1], next_cursor: "more" }), problem(403, "forbidden", false)],
    fails({ do: "client.items", args: ["room_list", {}] }, "PermissionError"),
    ["GET /v1/rooms", "GET /v1/rooms?cursor=more"],
  ),
];

const STREAM = `GET ${BOX}/executions/c/stream`;
const ended = { event: "room.destroyed", outcome: "success", seq: 9 };
CASES["a stream"] = [
  row("without the last event is resumed after the latest")(
    [lines(out(1), out(2)), lines(), lines({ type: "ping" }, out(3)), lines(exit(4), out(5))],
    { ...follow(), gives: sequence(1, 2, 3, 4) },
    [{ line: STREAM, headers: { accept: "application/x-ndjson" } }, `${STREAM}?after=2`, `${STREAM}?after=2`, `${STREAM}?after=3`],
  ),
  row("that was interrupted within an event requests the event again")(
    [{ ...lines(out(1)), text: `${lines(out(1), out(2)).text.slice(0, -5)}` }, lines(out(2), exit(3))],
    { ...follow(), gives: sequence(1, 2, 3) },
    [STREAM, `${STREAM}?after=1`],
  ),
  row("is resumed despite refusals and interruptions")(
    [lines(out(1)), busy, gateway(502), BROKEN, lines(exit(2))],
    { ...follow(), gives: sequence(1, 2) },
    [STREAM, /after=1$/, /after=1$/, /after=1$/, /after=1$/],
  ),
  row("that cannot continue is a StreamError with the code of its last event")(
    lines(out(1), { type: "error", code: "sandbox_not_found", detail: "It has gone.", retryable: false }),
    fails(follow(), "StreamError", { code: "sandbox_not_found", retryable: false, mentions: ["It has gone."] }),
    [STREAM],
  ),
  row("ends with the error of a refusal that is not retryable")(
    [lines(out(1)), problem(404, "execution_not_found", false)],
    fails(follow(), "NotFoundError", { code: "execution_not_found" }),
    [STREAM, `${STREAM}?after=1`],
  ),
  row("of audit records is resumed after some codes only, and ends with its room")(
    [...[lines({ type: "error", code: "shutting_down" }), lines(), lines(ended)], lines({ type: "error", code: "api_key_expired" })],
    [
      { do: "client.events", args: ["room_events", ROOM], gives: [ended] },
      fails(on("client.events", "room_events", ROOM), "StreamError", { code: "api_key_expired", retryable: false }),
    ],
    "----",
  ),
  row("of a room misses no event, even if it is interrupted before the first")(
    [ok({ items: [{ seq: 7 }], next_cursor: null }), lines(), lines(ended)],
    { ...on("room.events"), gives: [ended] },
    [/^GET \/v1\/rooms\/a\/audit\?/, `GET ${PATH}/events?after=7`, `GET ${PATH}/events?after=7`],
  ),
  row("of a terminal is resumed behind its last byte")(
    [lines({ type: "output", offset: 10, data_b64: "YWJj" }), lines(exit(1))],
    {
      ...on("client.events", "terminal_watch", { room_id: "a", sandbox: "b", terminal_id: "c" }),
      gives: [{ type: "output" }, { type: "exit" }],
    },
    [/\/terminals\/c\/[a-z]+$/, /\?after=13$/],
  ),
  row("that does not follow may end without a last event")(
    lines(out(1)),
    { do: "client.events", args: ["execution_stream", { ...EXECUTION, follow: false }], gives: sequence(1) },
    [`${STREAM}?follow=false`],
  ),
  ...[
    { name: "that is refused temporarily", place: {}, reply: busy },
    { name: "that is refused temporarily at a position", place: { after: 7 }, reply: busy },
    { name: "without a position yet", place: {}, reply: lines({ type: "ping" }) },
  ].map(({ name, place, reply }) =>
    row(`with interruptions only, ${name} fails`)(
      reply,
      fails(follow(INTERRUPTED, place), reply === busy ? "UnavailableError" : "ConnectionError"),
      { keys: "-", lacks: NO_RETRY },
    ),
  ),
  row("with interruptions only, with a position of its caller and any event is resumed")(
    [lines({ type: "ping" }), busy, lines(exit(9))],
    { ...follow(INTERRUPTED, { after: 1 }), gives: sequence(9) },
    { sends: [1, 2, 3].map(() => `${STREAM}?after=1`), lacks: NO_RETRY },
  ),
  row("with interruptions only, with a position is resumed")(
    [lines(out(1)), busy, lines(exit(9))],
    { ...follow(INTERRUPTED), gives: sequence(1, 9) },
    { sends: [STREAM, `${STREAM}?after=1`, `${STREAM}?after=1`], lacks: NO_RETRY },
  ),
];

/** A result without the output that was dropped before it was read. */
const GAP = { typescript: { stdoutTruncated: true }, python: { truncated: true } };
CASES["a command"] = [
  row("that is run has no open input, and its result")(
    [ok({}), lines(out(1, "o"), err(2, "e"), exit(3))],
    { ...on("sandbox.exec", "true"), gives: { stdout: "o", stderr: "e", exitCode: 0, stdoutTruncated: false } },
    [{ line: `POST ${BOX}/executions`, body: { stdin_open: false } }, /^GET /],
  ),
  row("with too much output has its beginning in the result")(
    [ok({}), lines(out(1, "abc"), out(2, "def"), err(3, "xy"), exit(4))],
    {
      ...on("sandbox.exec", "true"),
      options: { maxOutputBytes: 4 },
      gives: { stdout: "abcd", stdoutTruncated: true, stderr: "xy", stderrTruncated: false },
    },
    [{ line: `POST ${BOX}/executions`, without: ["max_output_bytes"] }, /^GET /],
  ),
  row("whose output was dropped continues at the oldest that is left")(
    [noHistory, ok({ oldest_seq: 8 }), lines(out(8, "late"), exit(9))],
    { ...on("execution.wait"), gives: { stdout: "late", exitCode: 0 }, givesOf: GAP },
    [/\/stream\b/, `GET ${BOX}/executions/c`, /[?&]after=7\b/],
  ),
  row("whose output is dropped during the stream continues, too")(
    [
      lines(out(1, "a"), { type: "error", code: "history_gone", detail: "", retryable: false }),
      ok({ oldest_seq: 9 }),
      lines(out(9, "b"), exit(10)),
    ],
    { ...on("execution.wait"), gives: { stdout: "ab" }, givesOf: GAP },
    [/\/stream\b/, `GET ${BOX}/executions/c`, /[?&]after=8\b/],
  ),
  row("whose output stays missing is an error")(
    [noHistory, ok({ oldest_seq: 9 }), noHistory, ok({ oldest_seq: 9 })],
    fails(on("execution.wait"), "GoneError", { code: "history_gone" }),
    "----",
  ),
];

CASES.waits = [
  row("for messages continue at the position of the service, also after a redelivered message")(
    [message(9), message(2, 9), message(10)],
    [9, 2, 10].map((seq) => ({ ...on("agent.wait"), gives: { seq } })),
    [/^GET (?!.*after=)/, /[?&]after=9\b/, /[?&]after=9\b/],
  ),
  row("for messages have a position for each filter")(
    [message(10), message(5), message(11), message(6), message(12)],
    [
      using(on("agent.wait"), { topic: "x" }),
      on("agent.wait"),
      using(on("agent.wait"), { topic: "x" }),
      on("agent.wait"),
      using(on("agent.wait"), { topic: "x", kind: "event" }),
    ],
    [/^GET (?!.*after=)/, /^GET (?!.*after=)/, /[?&]after=10\b/, /[?&]after=5\b/, /^GET (?!.*after=)/],
  ),
  row("for a message that does not arrive give none")(
    ok({ items: [], next_after: 1 }),
    { ...on("agent.wait"), options: { waitMs: 0 }, gives: null },
    [/[?&]wait_ms=0\b/],
  ),
  row("for a reply are made in several calls, with one message")(
    [problem(504, "reply_timeout", true), ok({ reply: { payload: 1 } })],
    { ...on("agent.request", "v", 1), options: { waitMs: 90_000, messageId: "m" }, gives: { payload: 1 } },
    {
      keys: "ab",
      sends: [50_000, 50_000].map((timeout_ms) => ({
        line: `POST ${PATH}/messages`,
        body: { message_id: "m", wait_reply: true, timeout_ms },
      })),
    },
  ),
  row("at a barrier are for one generation")(
    [ok({ state: "waiting", generation: 3 }), problem(504, "barrier_timeout", true), ok({ state: "released", generation: 3 })],
    { ...on("agent.barrier", "c"), options: { waitMs: 90_000 }, gives: { state: "released", generation: 3 } },
    {
      keys: "abc",
      sends: [
        { line: `POST ${PATH}/barriers`, body: { timeout_ms: 0 }, without: ["generation"] },
        { line: `POST ${PATH}/barriers`, body: { timeout_ms: 50_000, generation: 3 } },
        { line: `POST ${PATH}/barriers`, body: { timeout_ms: 50_000, generation: 3 } },
      ],
    },
  ),
  row("for a port that is exposed last until its server listens")(
    [ok({ port: 80, listening: false }), ok({ port: 80, listening: true }), ok({ port: 80, listening: false })],
    [
      { ...on("sandbox.exposePort", 80), options: { wait: true }, gives: { listening: true } },
      { ...on("sandbox.exposePort", 80), gives: { listening: false } },
    ],
    {
      keys: "abc",
      sends: [
        { line: /^POST /, body: { port: 80, wait_ms: 50_000 } },
        { line: /^POST /, body: { wait_ms: 50_000 } },
        { line: /^POST /, without: ["wait_ms"] },
      ],
    },
  ),
];

const TCP = "  sl  local_address rem_address   st tx_queue\n";
const CONNECTED = file(`${TCP}   1: 0100007F:0BB8 0100007F:9C40 01 00000000:00000000\n`);
const LISTENS = file(`${TCP}   0: ${"0".repeat(32)}:0BB8 ${"0".repeat(32)}:0000 0A 00000000\n`);
const newRoom = { line: "POST /v1/rooms", body: { ttl_seconds: 86_400, labels: { "roomd-sdk/own": "true" } } };
const newSandbox = {
  line: /^POST \/v1\/rooms\/a\/sandboxes\/from-template$|\/v1\/rooms\/sdk-\w+\/sandboxes\/from-template$/,
};
const fork = (agent_id: string, failure: object | null = null) => ({
  ...{ agent_id, sandbox: failure ? null : { room_id: "a", agent_id, state: "running" }, problem: failure },
});
const BUILD = ok({ template_id: "t", build_id: "bld_1", state: "failed", failure: { detail: "A step failed." } });
const manyLines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}\n`).join("");
CASES.sandboxes = [
  row("that start are awaited")([sandbox("creating"), sandbox("starting"), sandbox("running")], on("room.createSandbox", "b"), [
    newSandbox,
    `GET ${PATH}/sandboxes/sbx_1?wait_ms=50000`,
    `GET ${PATH}/sandboxes/sbx_1?wait_ms=50000`,
  ]),
  row("that start are awaited in calls of the time that is left")(
    [sandbox("starting"), sandbox("running")],
    using(on("room.createSandbox", "b"), { waitMs: 20_000 }),
    [newSandbox, /\?wait_ms=(1\d{4}|20000)$/],
  ),
  row("that start too long are a TimeoutError")(
    [sandbox("starting"), null],
    fails(using(on("room.createSandbox", "b"), { waitMs: 600 }), "TimeoutError"),
    { tookMs: [590, 4000], sends: [newSandbox, /^GET /] },
  ),
  ...["failed", "destroyed"].map((state) =>
    row(`that end as ${state} are an error with the reason`)(
      [sandbox("starting"), sandbox(state)],
      fails(on("room.createSandbox", "b"), "RoomdError", { mentions: ["No guest."] }),
      [newSandbox, /^GET /],
    ),
  ),
  row("that are gone before they run are an error")(
    [sandbox("starting"), problem(404, "sandbox_not_found", false)],
    fails(on("room.createSandbox", "b"), "NotFoundError"),
    [newSandbox, /^GET /],
  ),
  row("with their own room hibernate, and end with it")(
    [ok(ROOM), sandbox("running"), sandbox("running"), ok({}), ok({})],
    [{ ...on("Sandbox.create"), options: { labels: { team: "a" } } }, on("last.setTimeout", 90_500)],
    [
      { ...newRoom, body: { ...newRoom.body, labels: { ...newRoom.body.labels, team: "a" } } },
      { ...newSandbox, body: { labels: { team: "a" }, lifecycle: { idle_after_seconds: 900, on_idle: "hibernate" } } },
      { line: /^PATCH .*\/sandboxes\/\w+$/, body: { expires_in_seconds: 91 } },
      { line: /^PATCH /, body: { expires_in_seconds: 91 } },
    ],
  ),
  ...(
    [
      [{}, "delete"],
      [{ keep: true }, "retain"],
    ] as const
  ).map(([options, drive]) =>
    row(`with their own room and ${JSON.stringify(options)} destroy it, and its drive: ${drive}`)(
      [ok(ROOM), sandbox("running"), ok({})],
      [{ ...on("Sandbox.create"), options }, on("last.destroy")],
      [newRoom, newSandbox, new RegExp(`^DELETE /v1/rooms/[\\w-]+\\?drive=${drive}$`)],
    ),
  ),
  ...(
    [
      [60, 86_400],
      [100_000, 103_600],
      [31_536_000, 31_536_000],
    ] as const
  ).map(([maxDurationSeconds, ttl_seconds]) =>
    row(`with ${maxDurationSeconds} s of their own have a room of ${ttl_seconds} s`)(
      [ok(ROOM), sandbox("running")],
      using(on("Sandbox.create"), { maxDurationSeconds }),
      [
        { ...newRoom, body: { ttl_seconds } },
        { ...newSandbox, body: { max_duration_seconds: maxDurationSeconds } },
      ],
    ),
  ),
  row("with their own room and limits are created with these")(
    [ok(ROOM), sandbox("running"), ok(ROOM), sandbox("running")],
    [
      using(on("Sandbox.create"), { ttlSeconds: 60, idleTimeoutSeconds: 5 }),
      { ...on("Sandbox.create"), options: { ttlSeconds: null, lifecycle: {} } },
    ],
    [
      { ...newRoom, body: { ttl_seconds: 60 } },
      { ...newSandbox, body: { idle_timeout_seconds: 5 }, without: ["lifecycle"] },
      { line: "POST /v1/rooms", without: ["ttl_seconds"] },
      { ...newSandbox, body: { lifecycle: {} } },
    ],
  ),
  row("that cannot be created destroy their own room")(
    [ok(ROOM), problem(422, "validation_failed", false), ok({})],
    fails(on("Sandbox.create"), "InvalidRequestError"),
    [newRoom, newSandbox, /^DELETE .*\?drive=delete$/],
  ),
  row("whose own room is refused have none to destroy")(
    problem(422, "validation_failed", false),
    fails(on("Sandbox.create"), "InvalidRequestError"),
    [newRoom],
  ),
  row("with a reused key leave the room of the earlier call")(
    [ok(ROOM), problem(409, "idempotency_key_reused", false)],
    fails(using(on("Sandbox.create"), { idempotencyKey: "k" }), "ConflictError"),
    [newRoom, newSandbox],
  ),
  ...(
    [
      ["main", "true", "room_not_found", /^DELETE \/v1\/rooms\/a\?drive=delete$/],
      ["main", "false", "sandbox_not_found", /^DELETE \/v1\/rooms\/a\/sandboxes\/main$/],
      ["fork", "true", "sandbox_not_found", /^DELETE \/v1\/rooms\/a\/sandboxes\/fork$/],
    ] as const
  ).map(([agent_id, isOwn, code, end]) =>
    row(`that are found by id end with their room only if it is theirs: ${agent_id}, ${isOwn}`)(
      [
        ok({ room_id: "a", agent_id }),
        sandbox("running", { agent_id }),
        ok({ labels: { "roomd-sdk/own": isOwn } }),
        problem(404, code, false),
      ],
      [on("Sandbox.connect", "sbx_1"), on("last.destroy")],
      ["GET /v1/locate/sbx_1", `GET ${PATH}/sandboxes/${agent_id}`, `GET ${PATH}`, end],
    ),
  ),
  row("with a server are awaited by reading the kernel's tables only")(
    [CONNECTED, noPath, CONNECTED, LISTENS],
    on("sandbox.waitForPort", 3000),
    ["tcp", "tcp6", "tcp", "tcp6"].map((table) => `GET ${BOX}/files/raw/proc/net/${table}`),
  ),
  row("without a server are a TimeoutError that names the port")(
    times(20, CONNECTED),
    fails(using(on("sandbox.waitForPort", 3000), { waitMs: 50 }), "TimeoutError", { mentions: ["3000"] }),
    { tookMs: [40, 2000], sends: ["tcp", "tcp6"].map((table) => `GET ${BOX}/files/raw/proc/net/${table}`) },
  ),
  row("are forked into several")(ok({ items: [fork("x"), fork("y")] }), { ...on("sandbox.fork", ["x", "y"]), gives: [null, null] }, [
    { line: `POST ${BOX}/fork`, body: { agents: [{ agent_id: "x" }, { agent_id: "y" }] } },
  ]),
  row("that cannot all be forked are an error with those that can")(
    ok({ items: [fork("x"), fork("y", { code: "disk_full", title: "", detail: "Full." })] }),
    fails(on("sandbox.fork", ["x", "y"]), "ForkError", {
      ...{ problems: [{ agent_id: "y", code: "disk_full" }], sandboxes: [null], mentions: ["y", "Full."] },
    }),
    "a",
  ),
  row("whose template cannot be built are an error with the last lines of the output")(
    [BUILD, lines(out(1, manyLines(100)), out(2, "no such host\n"), exit(3)), BUILD],
    fails(on("templates.build", { template_id: "t" }), "TemplateBuildError", {
      ...{ build: { build_id: "bld_1" }, lastLines: [...manyLines(100).trim().split("\n").slice(-19), "no such host"] },
      mentions: ["A step failed."],
    }),
    "a--",
  ),
];

CASES.files = [
  row("that are interrupted are requested again")(
    [{ ...BROKEN, headers: { "Content-Length": "99" } }, file("whole")],
    { ...on("room.drive.readText", "/x"), gives: "whole" },
    "--",
  ),
  row("that are interrupted while they are streamed are an error")(
    { ...BROKEN, headers: { "Content-Length": "99" } },
    fails(on("room.drive.open", "/x"), "ConnectionError", { fault: "broken" }),
    "-",
  ),
  row("are read unchanged, with a byte order mark")(
    times(2, file("\ufeffhello")),
    ["room.drive.readText", "sandbox.files.readText"].map((read) => ({ ...on(read, "/x"), gives: "\ufeffhello" })),
    "--",
  ),
  row("are read in parts by a range")(
    [file("x"), file("x")],
    [using(on("room.drive.read", "/x"), { offset: 10, length: 5 }), using(on("sandbox.files.read", "/x"), { offset: 10 })],
    [
      { line: /^GET /, headers: { range: "bytes=10-14" } },
      { line: /^GET /, headers: { range: "bytes=10-" } },
    ],
  ),
  row("are written as bytes, again after an interruption")(
    [BROKEN, ok({ path: "/x" })],
    { ...on("room.drive.write", "/x", "hello"), gives: { path: "/x" } },
    [1, 2].map(() => ({
      line: `PUT ${PATH}/drive/files/x`,
      headers: { "content-type": "application/octet-stream", "content-length": "5" },
    })),
  ),
];
