/**
 * One call of a tool: it calls operations, each of which passes the pipeline as a request of the same caller, within the time limit of a
 * tool. Operations that it no longer awaits continue.
 */
import { hash } from "node:crypto";
import type { TProperties } from "@sinclair/typebox";
import { fields, NONE, type Operation } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { agentWait } from "../../../shared/api/fabric.ts";
import { REQUEST_HEADERS, takesIdempotencyKey } from "../../../shared/api/headers.ts";
import { argumentsOf, type Tool } from "../../../shared/api/mcp/tool.ts";
import { MAX_TOOL_WAIT_MS } from "../../../shared/api/mcp/tools.ts";
import type { KeyId } from "../../../shared/ids.ts";
import { type TraceContext, writeTraceparent } from "../../../shared/traceparent.ts";
import type { Host } from "../../cluster/directory.ts";
import { type Bound, bodyOf, type Done, NO_TRANSFER } from "../../core/call/operation.ts";
import type { Traces } from "../../core/call/traces.ts";
import { monotonicMs } from "../../core/clock.ts";
import { orAfter } from "../../core/concurrency/published.ts";
import type { Log } from "../../core/log.ts";
import { loopTime } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Aside } from "../../host/aside/pool.ts";
import type { HostClient } from "../hosts/client.ts";
import { forwardJson, forwardRequest } from "../hosts/forward.ts";
import { brokenRules, type InputCheck, makeInputCheck } from "../pipeline/input.ts";
import type { Pipeline, PipelineRequest } from "../pipeline/pipeline.ts";
import { retryAfterOf, toProblem } from "../pipeline/problem.ts";
import type { Rate } from "../pipeline/rate-limit.ts";
import type { Outcome } from "../pipeline/request-context.ts";
import { bytesOf, type FileBytes, type FileUpload, outcomeOf, requestOf, transferOf } from "./file-bytes.ts";
import { type BegunKind, nameOf } from "./names.ts";
import { MAX_LIMITED_RESULT, MAX_RESULT } from "./shorten.ts";
import { type ShortReply, SMALL_REPLY_BYTES, shortenAside } from "./tasks.ts";

export type Arguments = Record<string, unknown>;

/** The HTTP request that carried the tool call. */
export interface Visit {
  /** Identity of the caller's key across rotations. */
  first_key_id: KeyId;
  authorization: string | null;
  ip: string | null;
  request_id: string;
  /** The trace that its operations continue. */
  trace: TraceContext | null;
  /** How large it was. */
  bytes: number;
  /** Rate after this request; the first operation counts as this request. */
  rate?: Rate | null;
}

export interface Refused {
  kind: "problem";
  problem: Problem;
  retry_after_seconds: number | null;
}

export type Reply =
  | { kind: "done"; done: Done<Operation>; body: Arguments; file?: FileBytes; whole?: ShortReply["whole"] }
  | Refused
  /** It takes longer than the tool may, or the client is gone. */
  | { kind: "late" };

interface WalkOptions {
  withinMs?: number;
  sent?: FileUpload | null;
  /** Whether a long body is shortened to `most`, in the aside thread. */
  isShort?: boolean;
}

/** Arguments that bound the length of an answer. */
const LIMITS = ["limit", "length", "max_output_bytes"];
/** Reserved after a wait, for reading the result. */
const ANSWER_MS = 3000;
/** Allowance for the message around the arguments. */
const ENVELOPE_BYTES = 16 * 1024;

export interface CallDeps {
  bound: ReadonlyMap<string, Bound>;
  road: Pipeline;
  aside: Aside;
  traces: Traces;
  /** Client for other hosts; null: standalone. */
  others: { client: HostClient; own: string } | null;
  log: Log;
}

interface NamedCall {
  tool: string;
  arguments: Arguments;
}

interface ToolRequest {
  tool: Tool;
  given: Arguments;
  signal: AbortSignal;
  /** Translates a call to the client's set of tools; unchanged by default. */
  translate?: (next: NamedCall) => NamedCall;
}

export class ToolCall {
  readonly #deadline = monotonicMs() + MAX_TOOL_WAIT_MS + ANSWER_MS;

  readonly tool: Tool;
  /** As the client sent them. */
  readonly given: Arguments;
  readonly #deps: CallDeps;
  readonly #owner = loopTime.owner;
  readonly #visit: Omit<Visit, "rate">;
  /** Rate of the first operation; empty after it. */
  #rate: { rate?: Rate | null };
  /** Aborts when the client cancels the call or disconnects. */
  readonly #signal: AbortSignal;
  readonly #translate: (next: NamedCall) => NamedCall;

  constructor(deps: CallDeps, visit: Visit, request: ToolRequest) {
    this.tool = request.tool;
    this.given = request.given;
    this.#deps = deps;
    const { rate, ...rest } = visit;
    this.#visit = rest;
    this.#rate = rate === undefined ? {} : { rate };
    this.#signal = request.signal;
    this.#translate = request.translate ?? ((next) => next);
  }

  /** Identity of the calling key, which a rotation does not change. */
  get keyId(): KeyId {
    return this.#visit.first_key_id;
  }

  /** A call translated to the client's set of tools. */
  shown(next: NamedCall): NamedCall {
    return this.#translate(next);
  }

  /** The same as text. */
  spell(next: NamedCall): string {
    const { tool, arguments: args } = this.#translate(next);
    return `${tool} ${JSON.stringify(args)}`;
  }

  /** The rest of the time that the call may take. */
  get leftMs(): number {
    return Math.max(0, this.#deadline - monotonicMs());
  }

  /** Name of a resource that it creates; with an idempotency key the same for each retry by this key. `place` is its scope. */
  nameOf(kind: BegunKind, idempotencyKey: string | undefined, place: readonly string[]): string {
    return nameOf(kind, idempotencyKey, [this.#visit.first_key_id, ...place]);
  }

  /** How much of the desired wait is possible. */
  waitMs(wantedMs: number): number {
    return Math.max(0, Math.min(wantedMs, Math.floor(this.leftMs - ANSWER_MS)));
  }

  /** Maximum of a result as JSON. */
  get most(): number {
    return this.isLimited ? MAX_LIMITED_RESULT : MAX_RESULT;
  }

  /** Whether the client has bounded the answer. */
  get isLimited(): boolean {
    return LIMITS.some((name) => this.given[name] !== undefined);
  }

  /** Calls the tool's operation with arguments of the tool; a long body is shortened. Never throws. */
  async pass(args: Arguments): Promise<Reply> {
    return await this.#walk(strict(this.#bound(this.tool.operation), this.tool), args, { isShort: true });
  }

  /** Calls an operation with checked arguments; undefined ones are absent. Never throws. */
  async ask(operation: Operation, args: Arguments, withinMs = this.leftMs): Promise<Reply> {
    return await this.#walk(inOneBody(this.#bound(operation)), args, { withinMs });
  }

  /** The same; a long body is shortened. */
  async askShort(operation: Operation, args: Arguments): Promise<Reply> {
    return await this.#walk(inOneBody(this.#bound(operation)), args, { isShort: true });
  }

  /** Calls an operation with a file as its body or response; the response is at most the requested range. */
  async askFile(operation: Operation, args: Arguments, sent: FileUpload): Promise<Reply> {
    return await this.#walk(this.#bound(operation), args, { sent });
  }

  /** Checks the arguments by the tool's own rules, for tools that use them before any operation does. */
  check(): { kind: "checked"; input: Arguments } | Refused {
    const { input, bad } = checkOf(this.tool).check({}, {}, this.given);
    if (bad.length === 0) return { kind: "checked", input };
    return this.refuse(brokenRules(bad));
  }

  refuse(error: ServiceError): Refused {
    const problem = toProblem(error, this.#visit.request_id, this.#deps.log);
    return { kind: "problem", problem, retry_after_seconds: retryAfterOf(error, problem) };
  }

  #bound({ name }: Operation): Bound {
    const bound = this.#deps.bound.get(name);
    if (!bound) throw new Error(`no operation implements ${name}`);
    return bound;
  }

  async #walk(
    bound: Bound,
    args: Arguments,
    { withinMs = this.leftMs, sent = null, isShort = false }: WalkOptions,
  ): Promise<Reply> {
    const work = this.#deps.road.run(bound, this.#requestOf(bound.operation, args, sent));
    const reply = await orAfter(work, withinMs, null, this.#signal);
    if (reply === null) {
      work.then((late) => {
        if (late.kind !== "done") return;
        late.done.events?.cancel();
        void late.done.bytes?.stream.cancel().catch(() => {});
      });
      return { kind: "late" };
    }
    if (reply.kind === "problem") return reply;
    if (sent) return await this.#fileReply(reply.done);
    const { stream, json } = reply.done;
    // A tool's answer is one object, however long.
    try {
      if (isShort && json && json.bytes.byteLength > SMALL_REPLY_BYTES) {
        const shortened = {
          buffer: bufferOf(json.bytes),
          most: this.most,
          isInbox: bound.operation.name === agentWait.name,
        };
        const by = { owner: this.#owner, signal: this.#signal };
        return { kind: "done", done: reply.done, ...(await this.#deps.aside.run(shortenAside, shortened, by)) };
      }
      if (stream?.type !== "application/json") {
        return { kind: "done", done: reply.done, body: (bodyOf(reply.done) ?? {}) as Arguments };
      }
      return { kind: "done", done: reply.done, body: (await new Response(stream.bytes).json()) as Arguments };
    } catch (cause) {
      return this.refuse(cause instanceof ServiceError ? cause : new ServiceError("internal", { cause }));
    }
  }

  /** Reads a file; a stream that breaks off is an error, not a shorter file. */
  async #fileReply(done: Done<Operation>): Promise<Reply> {
    try {
      const read = await orAfter(bytesOf(done), this.leftMs, null, this.#signal);
      if (read) return { kind: "done", done, body: {}, file: read };
      if (done.bytes) return { kind: "late" };
      const body = (done.answer ? await done.answer.json() : bodyOf(done)) as Arguments;
      return { kind: "done", done, body };
    } catch (cause) {
      return this.refuse(cause instanceof ServiceError ? cause : new ServiceError("guest_unreachable", { cause }));
    }
  }

  #requestOf(operation: Operation, args: Arguments, sent: FileUpload | null): PipelineRequest {
    const inPath = Object.keys(operation.params.properties);
    const params = Object.fromEntries(
      inPath.flatMap((name) => (isText(args[name]) ? [[name, String(args[name])]] : [])),
    );
    const body = Object.fromEntries(
      Object.entries(args).filter(
        ([name, value]) => value !== undefined && ![...inPath, "idempotency_key"].includes(name),
      ),
    );
    const key =
      takesIdempotencyKey(operation) && typeof args.idempotency_key === "string" ? args.idempotency_key : null;
    const rateInfo = this.#rate;
    this.#rate = {};
    return {
      ...this.#visit,
      ...rateInfo,
      source: "mcp",
      token: null,
      path: pathOf(operation, params),
      params,
      // An operation with a file keeps its query, because its body is the file.
      query: () => (sent ? textsOf(body) : {}),
      body: async (maxBytes) => {
        if (this.#visit.bytes > maxBytes + ENVELOPE_BYTES) {
          throw new ServiceError("body_too_large", {
            detail: `The arguments are over ${maxBytes} bytes.`,
            details: { max_bytes: maxBytes },
          });
        }
        return { fields: body, sha256: key === null ? "" : this.#sentSha256(key) };
      },
      idempotency_key: key,
      transfer: sent ? transferOf(sent) : NO_TRANSFER,
      signal: this.#signal,
      ...(this.#deps.others
        ? {
            forward: (host: Host) =>
              sent
                ? this.#forwardFile(host, operation, { params, query: textsOf(body) }, sent)
                : this.#forward(host, operation.name, { params, body, key }),
            ask: (host: Host, query: Record<string, string>, until: AbortSignal) =>
              this.#askPart(host, operation, { params, query }, until),
          }
        : {}),
    };
  }

  /**
   * The client's arguments identify the call, not the request derived from them; a key that the tool has generated is sent in the next
   * call.
   */
  #sentSha256(key: string): string {
    return hash("sha256", JSON.stringify({ ...this.given, idempotency_key: key }));
  }

  /** Requests another host's part of this read. */
  async #askPart(
    host: Host,
    operation: Operation,
    { params, query }: { params: Record<string, string>; query: Record<string, string> },
    until: AbortSignal,
  ) {
    const { others } = this.#deps;
    if (!others) throw new Error(`${operation.name} cannot be called on another host`);
    const { authorization, request_id, ip } = this.#visit;
    const headers = { accept: "application/json", ...(authorization === null ? {} : { authorization }) };
    const request = { method: "GET", path: pathOf(operation, params), query, headers };
    const about = { ip, request_id, own: others.own, source: "mcp" } as const;
    return await forwardJson(others.client, host, request, about, AbortSignal.any([this.#signal, until]));
  }

  /** Forwards the operation to another host as a REST request. */
  async #forward(
    host: Host,
    name: string,
    { params, body, key }: { params: Record<string, string>; body: Arguments; key: string | null },
  ): Promise<Outcome> {
    const { others, bound } = this.#deps;
    const operation = bound.get(name)?.operation;
    if (!others || !operation) throw new Error(`${name} cannot be called on another host`);
    const { authorization, request_id, ip, trace } = this.#visit;
    const isQuery = (field: string) => operation.method === "GET" || Object.hasOwn(operation.query.properties, field);
    const query = Object.entries(body).filter(([field]) => isQuery(field));
    const fields = Object.fromEntries(Object.entries(body).filter(([field]) => !isQuery(field)));
    const headers = {
      ...(authorization === null ? {} : { authorization }),
      ...(key === null ? {} : { [REQUEST_HEADERS.idempotency_key.name]: key }),
      ...(trace === null ? {} : { [REQUEST_HEADERS.traceparent.name]: writeTraceparent(trace) }),
    };
    const request = {
      ...{ method: operation.method, path: pathOf(operation, params), headers, unparsedFrom: SMALL_REPLY_BYTES },
      query: Object.fromEntries(query.map(([field, value]) => [field, String(value)])),
      ...(operation.method === "GET" || operation.body === null ? {} : { fields }),
    };
    const sent = key === null ? {} : { sent_sha256: this.#sentSha256(key) };
    const about = { ip, request_id, own: others.own, source: "mcp", ...sent } as const;
    const forwarded = await forwardJson(others.client, host, request, about, this.#signal);
    const { status, headers: responseHeaders, body: answer, json, events } = forwarded;
    if (status < 400) {
      const done = { outcome: "forwarded", ...(events ? { events } : json ? { json } : { body: answer }) };
      return { kind: "done", status, done, location: null, replayed: false };
    }
    const after = responseHeaders.get("retry-after");
    const retry_after_seconds = after === null ? null : Number(after);
    return { kind: "problem", status, problem: answer as Problem, retry_after_seconds, replayed: false };
  }

  async #forwardFile(
    host: Host,
    operation: Operation,
    { params, query }: { params: Record<string, string>; query: Record<string, string> },
    sent: FileUpload,
  ): Promise<Outcome> {
    const { others } = this.#deps;
    if (!others) throw new Error(`${operation.name} cannot be called on another host`);
    const { authorization, request_id, ip } = this.#visit;
    const path = pathOf(operation, params);
    const url = new URL(`http://${host.address}${path}?${new URLSearchParams(query)}`);
    // URL parsing resolves dot segments, so the path would name another operation of that host.
    if (url.pathname !== path) throw new ServiceError("invalid_path", { detail: 'The path contains "..".' });
    const request = requestOf(url.href, operation.method, authorization === null ? {} : { authorization }, sent);
    const about = { ip, request_id, own: others.own, source: "mcp" } as const;
    return await outcomeOf(await forwardRequest(others.client, host, request, about, this.#signal));
  }
}

/** The buffer of these bytes alone. */
function bufferOf(bytes: Uint8Array): ArrayBuffer {
  const { buffer } = bytes;
  return buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength
    ? buffer
    : new Uint8Array(bytes).buffer;
}

/** `{name*}` is the rest of a path: its slashes are not encoded. */
const pathOf = ({ path }: Operation, params: Record<string, string>) =>
  path.replaceAll(/\{(\w+)(\*?)\}/g, (_, name: string, rest: string) => {
    const text = params[name] ?? "";
    return rest === "" ? encodeURIComponent(text) : text.split("/").map(encodeURIComponent).join("/");
  });

const textsOf = (args: Arguments) =>
  Object.fromEntries(Object.entries(args).map(([name, value]) => [name, String(value)]));

const isText = (value: unknown) => typeof value === "string" || typeof value === "number";

/** Each is made once: the pipeline compiles an operation's check when it first sees that operation. */
const loose = new WeakMap<Bound, Bound>();
const strictly = new WeakMap<Bound, Map<Tool, Bound>>();
const checks = new WeakMap<Tool, InputCheck>();

/** An operation with its query in its body. */
function inOneBody(bound: Bound): Bound {
  return remembered(loose, bound, () => withBody(bound, argumentsOf(bound.operation)));
}

/** An operation that accepts exactly the arguments of a tool. */
function strict(bound: Bound, tool: Tool): Bound {
  const byTool = remembered(strictly, bound, () => new Map<Tool, Bound>());
  return remembered(byTool, tool, () => withBody(bound, tool.input.properties));
}

function checkOf(tool: Tool): InputCheck {
  return remembered(checks, tool, () => makeInputCheck({ params: NONE, query: NONE, body: tool.input }));
}

function withBody(bound: Bound, known: TProperties): Bound {
  const { operation } = bound;
  const inPath = Object.keys(operation.params.properties);
  const body = fields(Object.fromEntries(Object.entries(known).filter(([name]) => !inPath.includes(name))));
  return {
    ...bound,
    operation: { ...operation, query: NONE, body },
    find: (call, params) => {
      requireNames(inPath, params);
      return bound.find(call, params);
    },
  };
}

function remembered<Key extends object, Value>(
  values: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: () => Value,
): Value {
  const known = values.get(key);
  if (known !== undefined) return known;
  const made = make();
  values.set(key, made);
  return made;
}

/** Requires all parameters of a path, which arguments may lack. Throws validation_failed. */
function requireNames(names: readonly string[], params: Record<string, string>): void {
  const absent = names.filter((name) => !Object.hasOwn(params, name));
  const [first] = absent;
  if (first === undefined) return;
  throw new ServiceError("validation_failed", {
    detail: absent.length === 1 ? `${first} is required.` : `${absent.join(" and ")} are required.`,
    errors: absent.map((field) => ({ field, code: "required", message: `${field} is required.` })),
  });
}
