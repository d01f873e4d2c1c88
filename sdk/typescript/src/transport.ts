/**
 * Transport of all calls to the service, and their single retry policy. A POST has an Idempotency-Key, which stays the same while it is
 * unknown whether the call was carried out: nothing is done twice.
 */
import { randomUUID } from "node:crypto";
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  validateHeaderName,
  validateHeaderValue,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ConnectionError, type Problem, ProblemError, problemError, TimeoutError, UsageError } from "./errors.ts";
import { traceparentOf } from "./trace.ts";

/** Content of a file to send. A stream can be read only once, so it is not retried. */
export type FileBody = string | Uint8Array | Blob | AsyncIterable<Uint8Array>;

export interface Connection {
  /** Without a trailing slash. */
  url: string;
  /** A function is called before every attempt. */
  key: string | null | (() => Promise<string | null>);
  /** Certificates to trust, as PEM, in place of the system's. */
  ca: string | null;
  /** The default trace that calls continue. */
  traceparent?: string | (() => string | undefined);
  userAgent: string;
  /** Environment with HTTP_PROXY, HTTPS_PROXY and NO_PROXY; null: no proxy. */
  proxyEnv: Record<string, string | undefined> | null;
  /** Default of calls. */
  retry: Retry;
}

/** Retry policy. */
export interface Retry {
  /**
   * `any`: every transient failure. `interrupted`: a GET or POST after its connection broke; if the service is unreachable or temporarily
   * refuses, a call fails immediately, as does a stream before its first position is known.
   */
  after: "any" | "interrupted";
  /**
   * Longest time for retries in ms, without a limit on their number. By default six attempts; but a client that has never received a
   * response retries failed connection attempts for one second only.
   */
  forMs?: number;
}

/** Options of every call. */
export interface CallOptions {
  /** Aborts the wait. The service completes a call that it has started. */
  signal?: AbortSignal;
  /** Longest wait for the call with all its attempts, in ms; 10 minutes by default. After it, TimeoutError is thrown. */
  waitMs?: number;
  /** Alias of `waitMs`; with `exec` and `start` of a sandbox, the time limit of the command instead. */
  timeoutMs?: number;
  /** Replaces the key that is generated for each POST: calls with the same key take effect once, even from several processes. */
  idempotencyKey?: string;
  /** Additional headers of the request. */
  headers?: Record<string, string>;
  /** Replaces the client's retry policy. */
  retry?: Retry;
}

/** Names of the options of every call. */
export const CALL_OPTIONS: Record<keyof CallOptions, true> = {
  signal: true,
  waitMs: true,
  timeoutMs: true,
  idempotencyKey: true,
  headers: true,
  retry: true,
};

/** The longest wait that these options allow, in ms. */
export function longestWaitOf({ waitMs, timeoutMs }: Pick<CallOptions, "waitMs" | "timeoutMs">): number | undefined {
  return waitMs ?? timeoutMs;
}

interface SentRequest {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body: FileBody | null;
  /** Statuses that are accepted like a success. */
  answers?: readonly number[];
}

export interface RawResponse {
  status: number;
  headers: IncomingMessage["headers"];
  body: IncomingMessage;
}

const TRIES = 6;
const PAUSE_MS = { first: 250, most: 8000 } as const;
/** Time for connection attempts of a client that has never had a response: its URL may be wrong. */
const FIRST_CONTACT_MS = 1000;
/** Timeout for establishing a connection. */
const CONNECT_MS = 15_000;
/** Default of calls. */
export const DEFAULT_TIMEOUT_MS = 600_000;
const MAX_PROBLEM_BYTES = 256 * 1024;
/** Statuses of a proxy that may have forwarded the call before. */
const GIVEN_UP = [502, 504];
/** From a proxy before the service, or from the service without a problem: its own refusals state whether a retry can help. */
const PASSING = [408, 429, 502, 503, 504];
/** Errors of an established connection. */
const BREAKS = ["ECONNRESET", "EPIPE"];
/** The outcome of a wait. */
const WAITED = ["barrier_timeout", "reply_timeout"];

export class Transport {
  readonly connection: Connection;
  readonly #agent: HttpAgent;
  /** A request that cannot be repeated gets a new connection, not a kept-alive one. */
  readonly #fresh: HttpAgent;
  readonly #request: typeof httpRequest;
  #hasAnswered = false;

  constructor(connection: Connection) {
    this.connection = connection;
    const isSecure = connection.url.startsWith("https:");
    this.#request = isSecure ? httpsRequest : httpRequest;
    const Agent = isSecure ? HttpsAgent : HttpAgent;
    const options = {
      ...(connection.ca === null ? {} : { ca: connection.ca }),
      ...(connection.proxyEnv === null ? {} : { proxyEnv: connection.proxyEnv }),
    };
    this.#agent = new Agent({ ...options, keepAlive: true });
    this.#fresh = new Agent(options);
  }

  /** Whether any response has arrived, which shows that the URL leads to a server. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  /** Closes all connections: pending calls fail. */
  close(): void {
    this.#agent.destroy();
    this.#fresh.destroy();
  }

  /**
   * Sends a call until it is answered, and a successful answer is read. `gone` is the result of a DELETE that an earlier attempt has
   * carried out, as far as that can be known. Throws the errors of errors.ts.
   */
  async send<T>(
    sent: SentRequest,
    read: (answer: RawResponse) => T | Promise<T>,
    options: CallOptions = {},
    missing?: T,
  ): Promise<T> {
    const deadline = performance.now() + (longestWaitOf(options) ?? DEFAULT_TIMEOUT_MS);
    const tries = new Tries(sent, options.retry ?? this.connection.retry);
    let key = options.idempotencyKey ?? randomUUID();
    checkHeaders({ ...options.headers, "Idempotency-Key": key });
    let mayBeDone = false;
    for (;;) {
      const failed = await this.#try(sent, key, deadline, read, options);
      if ("value" in failed) return failed.value;
      if (missing !== undefined && sent.method === "DELETE" && tries.mayBeDone && isNotFound(failed.error))
        return missing;
      const pause = tries.pauseAfter(failed, this.#hasAnswered);
      if (pause === null || performance.now() + pause > deadline) throw tries.toTell(failed.error);
      if (failed.known === "lost") mayBeDone = true;
      else if (failed.known === "refused" || (failed.known === "turned_away" && !mayBeDone)) {
        key = options.idempotencyKey ?? randomUUID();
        mayBeDone = false;
      }
      await delay(pause, options.signal);
    }
  }

  async #try<T>(
    sent: SentRequest,
    key: string,
    deadline: number,
    read: (answer: RawResponse) => T | Promise<T>,
    options: CallOptions,
  ): Promise<{ value: T } | Failed> {
    const apiKey = await this.#key();
    const ended = new AbortController();
    const timer = afterMs(deadline - performance.now(), () =>
      ended.abort(new TimeoutError("The service has not answered in time.")),
    );
    const stop = () => ended.abort(options.signal?.reason);
    options.signal?.addEventListener("abort", stop, { once: true });
    try {
      options.signal?.throwIfAborted();
      const answer = await this.#once(sent, { key, apiKey }, ended.signal, options.headers);
      const isAnswer = answer.status < 300 || (sent.answers?.includes(answer.status) && isJson(answer));
      return isAnswer ? { value: await read(answer) } : await failedBy(answer, this.connection.url);
    } catch (error) {
      ended.signal.throwIfAborted();
      // A signal that was aborted before the attempt raises no event.
      options.signal?.throwIfAborted();
      if (error instanceof SourceFault) throw error.cause;
      // An unreadable answer may be the rest of a truncated one.
      const isForeign = error instanceof ConnectionError && error.fault === "foreign" && error.cause === undefined;
      return { error: unreachable(this.connection.url, error), isWorthIt: !isForeign, known: "lost" };
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", stop);
    }
  }

  async #key(): Promise<string | null> {
    const { key } = this.connection;
    return typeof key === "function" ? await key() : key;
  }

  /** Resolves with the head of a response, whatever its status. */
  #once(
    sent: SentRequest,
    { key, apiKey }: { key: string; apiKey: string | null },
    signal: AbortSignal,
    headers: Record<string, string> = {},
  ): Promise<RawResponse> {
    const { connection } = this;
    const traceparent = traceparentOf(connection.traceparent);
    return new Promise((resolve, reject) => {
      const request = this.#request(`${connection.url}${sent.path}`, {
        method: sent.method,
        agent: isStream(sent.body) ? this.#fresh : this.#agent,
        headers: {
          "User-Agent": connection.userAgent,
          Accept: "application/json",
          ...(apiKey === null ? {} : { Authorization: `Bearer ${apiKey}` }),
          ...(sent.method === "POST" ? { "Idempotency-Key": key } : {}),
          ...(traceparent === undefined ? {} : { traceparent }),
          ...sent.headers,
          ...headers,
        },
      });
      const stop = () => request.destroy(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
      request.on("close", () => signal.removeEventListener("abort", stop));
      request.on("error", reject);
      request.on("socket", (socket) => {
        if (!socket.connecting) return;
        const timer = setTimeout(() => {
          if (socket.connecting) request.destroy(unconnected(connection.url));
        }, CONNECT_MS);
        for (const over of ["connect", "close"]) socket.once(over, () => clearTimeout(timer));
      });
      request.on("response", (body: IncomingMessage) => {
        // The reader of the body gets the error.
        body.on("error", () => {});
        this.#hasAnswered = true;
        resolve({ status: body.statusCode ?? 0, headers: body.headers, body });
      });
      write(request, sent.body).catch((error) => {
        reject(error);
        request.destroy();
      });
    });
  }
}

function checkHeaders(headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch (cause) {
      throw new UsageError(`The header ${JSON.stringify(name)} has invalid characters.`, { cause });
    }
  }
}

/**
 * Knowledge about a failed attempt: none; an earlier attempt is still in progress; this one was rejected before processing; nothing was
 * done, and this answer is stored under its key.
 */
type FailureKind = "lost" | "running" | "turned_away" | "refused";

interface Failed {
  error: Error;
  /** Whether another try may succeed. */
  isWorthIt: boolean;
  known: FailureKind;
  afterMs?: number;
}

function knownOf({ status, code }: Problem): FailureKind {
  if (status >= 500) return "lost";
  if (code === "idempotency_in_progress") return "running";
  // The rate limit is checked before the key.
  return code === "rate_limited" ? "turned_away" : "refused";
}

async function failedBy(answer: RawResponse, url: string): Promise<Failed> {
  const { status, headers } = answer;
  const problem = await problemOf(answer, url);
  const pause = retryAfterOf(answer);
  if (problem === null) {
    const isRedirect = status < 400 && headers.location !== undefined;
    const explanation = isRedirect
      ? `leads to ${headers.location}: set ROOMD_URL to the service's address`
      : "it is not roomd";
    const message = `${url} answered ${status}, ${isRedirect ? "which" : "but"} ${explanation}.`;
    const error = new ConnectionError(message, { fault: "foreign", url, status });
    return { error, isWorthIt: PASSING.includes(status), known: "lost", ...pause };
  }
  const isWorthIt = problem.retryable && !WAITED.includes(problem.code);
  return { error: problemError(problem), isWorthIt, known: knownOf(problem), ...pause };
}

/** The source of an upload failed. */
class SourceFault extends Error {}

/** The attempts of one call: whether and when to make another. */
class Tries {
  readonly #retry: Retry;
  readonly #isRepeatable: boolean;
  /** Whether the service recognizes a retry, or the call changes nothing. */
  readonly #isSafe: boolean;
  readonly #startedAt = performance.now();
  #count = 0;
  #failedAt: number | null = null;
  #interruption: ConnectionError | null = null;
  /** Whether a proxy gave up an attempt that it may have forwarded before. */
  #wasPassedOn = false;

  constructor({ method, body }: SentRequest, retry: Retry) {
    this.#retry = retry;
    this.#isRepeatable = !isStream(body);
    this.#isSafe = method === "GET" || method === "POST";
  }

  /** Whether an attempt was sent whose outcome is unknown. */
  get mayBeDone(): boolean {
    return this.#interruption !== null || this.#wasPassedOn;
  }

  /** Delay before the next attempt; null if absent. */
  pauseAfter({ error, isWorthIt, known, afterMs }: Failed, hasAnswered: boolean): number | null {
    if (error instanceof ConnectionError && error.fault === "broken") this.#interruption ??= error;
    if (error instanceof ConnectionError && GIVEN_UP.includes(error.status ?? 0)) this.#wasPassedOn = true;
    this.#failedAt ??= performance.now();
    // A call in progress is awaited, however long it takes.
    if (known === "running" || isMoving(error)) this.#failedAt = null;
    else this.#count++;
    const isMeant = this.#retry.after === "any" || (this.#isSafe && this.#interruption !== null);
    if (!isWorthIt || !isMeant || !this.#isRepeatable || this.#isOver()) return null;
    const pause = afterMs ?? Math.random() * Math.min(PAUSE_MS.first * 2 ** this.#count, PAUSE_MS.most);
    const leftMs = hasAnswered || !this.#hasNoContact(error) ? this.#leftMs : this.#firstContactLeftMs;
    return leftMs <= 0 ? null : Math.min(pause, leftMs);
  }

  /** Whether no attempt established a connection, and the caller has set no time limit for retries. */
  #hasNoContact(error: Error): boolean {
    return isNoConnection(error) && !this.mayBeDone && this.#retry.forMs === undefined;
  }

  get #firstContactLeftMs(): number {
    return this.#startedAt + FIRST_CONTACT_MS - performance.now();
  }

  /** An interruption after which the call may have been carried out is more important than an unreachable service. */
  toTell(error: Error): Error {
    const isUnreachable = error instanceof ConnectionError && error.fault === "unreachable";
    return isUnreachable ? (this.#interruption ?? error) : error;
  }

  get #leftMs(): number {
    const { forMs = Number.POSITIVE_INFINITY } = this.#retry;
    return this.#failedAt === null ? forMs : this.#failedAt + forMs - performance.now();
  }

  #isOver(): boolean {
    return this.#retry.forMs === undefined ? this.#count === TRIES : this.#leftMs <= 0;
  }
}

/** No connection was established: the URL may be wrong, or the service is down. */
export const isNoConnection = (error: unknown) =>
  error instanceof ConnectionError && (error.fault === "unreachable" || error.fault === "untrusted");

const isNotFound = (error: Error) => error instanceof ProblemError && error.status === 404;

/** The room is moving to another host; it will be reachable again, with no fixed time limit. */
export const isMoving = (error: unknown) => error instanceof ProblemError && error.code === "room_moving";

async function write(
  request: NodeJS.WritableStream & { setHeader?(name: string, value: number): void },
  body: FileBody | null,
) {
  if (body === null) return void request.end();
  if (typeof body === "string" || body instanceof Uint8Array) {
    request.setHeader?.("Content-Length", Buffer.byteLength(body));
    return void request.end(body);
  }
  if (body instanceof Blob) request.setHeader?.("Content-Length", body.size);
  await pipeline(
    Readable.from(sourced(body instanceof Blob ? (body.stream() as unknown as AsyncIterable<Uint8Array>) : body)),
    request,
  );
}

async function* sourced(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* source;
  } catch (error) {
    throw new SourceFault("the request body could not be read", { cause: error });
  }
}

const isStream = (body: FileBody | null) =>
  body !== null && typeof body !== "string" && !(body instanceof Uint8Array) && !(body instanceof Blob);

const isJson = ({ headers }: RawResponse) => headers["content-type"]?.startsWith("application/json") === true;

/** The whole body of a response. Throws ConnectionError if it ends early, or exceeds `most` bytes. */
export async function bytesOf({ body }: RawResponse, most = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const parts: Buffer[] = [];
  let left = most;
  try {
    for await (const part of body) {
      left -= (part as Buffer).byteLength;
      if (left < 0) throw new Error(`it is longer than ${most} bytes`);
      parts.push(part as Buffer);
    }
  } catch (error) {
    throw new ConnectionError("The connection broke before the answer was complete.", { cause: error });
  }
  if (!body.complete) throw new ConnectionError("The connection broke before the answer was complete.");
  return Buffer.concat(parts);
}

/**
 * The body of an answer as it arrives. The reader may take any time; the sender may be silent for `silentMs` at most. Throws
 * ConnectionError if the body ends early, and the signal's reason.
 */
export async function* partsOf(
  { body }: RawResponse,
  silentMs: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const parts = body[Symbol.asyncIterator]();
  const stop = () => void body.destroy();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      signal?.throwIfAborted();
      const timer = setTimeout(
        () => body.destroy(new Error(`nothing was received for ${silentMs / 1000} s`)),
        silentMs,
      );
      const next = await parts.next().finally(() => clearTimeout(timer));
      if (next.done) break;
      yield next.value as Uint8Array;
    }
    if (!body.complete) throw new Error("it ended early");
  } catch (error) {
    signal?.throwIfAborted();
    throw new ConnectionError("The connection broke.", { cause: error });
  } finally {
    signal?.removeEventListener("abort", stop);
    body.destroy();
  }
}

/** The problem that the service returned; null if the answer is not the service's. */
async function problemOf(answer: RawResponse, url: string): Promise<Problem | null> {
  if (answer.headers["content-type"]?.startsWith("application/problem+json") !== true) {
    answer.body.destroy();
    return null;
  }
  return parsed((await bytesOf(answer, MAX_PROBLEM_BYTES)).toString(), answer, url) as Problem;
}

/** JSON of an answer. Throws ConnectionError if it is invalid. */
export function parsed(text: string, { status }: RawResponse, url: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const details = { fault: "foreign", url, status, cause } as const;
    throw new ConnectionError(`${url} answered ${status}, but the answer cannot be parsed.`, details);
  }
}

function retryAfterOf({ headers }: RawResponse): { afterMs?: number } {
  const seconds = Number(headers["retry-after"]);
  return Number.isFinite(seconds) && headers["retry-after"] !== undefined ? { afterMs: seconds * 1000 } : {};
}

/** The caller's error for a failed connection. */
export function unreachable(url: string, cause: unknown): ConnectionError {
  if (cause instanceof ConnectionError) return cause;
  const { code = "", message = String(cause) } = cause as { code?: string; message?: string };
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/.test(code)) {
    return new ConnectionError(
      `The certificate of ${url} is not trusted (${message}). Put the service's certificate file in ROOMD_CA_CERT.`,
      { fault: "untrusted", url, cause },
    );
  }
  if (BREAKS.includes(code)) {
    const detail = `The connection to ${url} broke before the answer came (${message}).`;
    return new ConnectionError(`${detail} The call may or may not have been done.`, { url, cause });
  }
  const why = NO_CONNECTION[code]?.(new URL(url).hostname) ?? message;
  return new ConnectionError(`No service answers at ${url}: ${why}. ${REMEDY}`, { fault: "unreachable", url, cause });
}

const noAddress = (host: string) => `the name ${host} does not resolve`;
/** Messages for common errors, the same in both SDKs. */
const NO_CONNECTION: Record<string, (host: string) => string> = {
  ECONNREFUSED: () => "the connection is refused",
  ConnectionRefused: () => "the connection is refused",
  ENOTFOUND: noAddress,
  EAI_AGAIN: noAddress,
  EAI_NODATA: noAddress,
};
const REMEDY = "Check that roomd is running there, and that ROOMD_URL (or the option url) is its address.";

function unconnected(url: string): ConnectionError {
  const message = `No service answers at ${url}: no connection within ${CONNECT_MS / 1000} s. ${REMEDY}`;
  return new ConnectionError(message, { fault: "unreachable", url });
}

/** The longest delay that a timer supports. */
const MAX_MS = 2 ** 31 - 1;

/** Starts a timer; times beyond a timer's maximum (24 days) are reduced to it. */
export function afterMs(ms: number, work: () => void): NodeJS.Timeout {
  return setTimeout(work, Math.min(Math.max(0, ms), MAX_MS));
}

/** Resolves after the delay; rejects with the signal's reason. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = afterMs(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    signal?.addEventListener("abort", stop, { once: true });
  });
}
