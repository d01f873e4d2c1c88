/**
 * Owns the one way a call goes to the service, and the one policy by which it is tried again. A POST has an Idempotency-Key, which it keeps
 * while nobody knows whether it was carried out: nothing is done twice.
 */
import { randomUUID } from "node:crypto";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ConnectionError, type Problem, problemError, TimeoutError } from "./errors.ts";
import { VERSION } from "./version.ts";

/** What a file is sent from. It is sent again only if it can be read again: a stream cannot. */
export type FileBody = string | Uint8Array | Blob | AsyncIterable<Uint8Array>;

export interface Connection {
  /** Without a slash at its end. */
  url: string;
  key: string | null;
  /** Certificates to trust, as PEM, in place of the system's. */
  ca: string | null;
}

export interface CallOptions {
  /** Ends the waiting. What the service has begun goes on. */
  signal?: AbortSignal;
  /** For the whole call with all its tries; 10 minutes if absent. */
  timeoutMs?: number;
  /** In place of the one that is made for each POST: a call with the same key does nothing twice, also by another process. */
  idempotencyKey?: string;
  headers?: Record<string, string>;
}

interface Sent {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body: FileBody | null;
  /** Statuses that are as good an answer as a success. */
  answers?: readonly number[];
}

export interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: IncomingMessage;
}

const TRIES = 6;
const PAUSE_MS = { first: 250, most: 8000 } as const;
const DEFAULT_TIMEOUT_MS = 600_000;
const MOST_PROBLEM_BYTES = 256 * 1024;
/** Of whoever stands before the service, or of the service without words: its own refusals say for themselves whether to try again. */
const PASSING = [408, 429, 502, 503, 504];
/** The outcome of a wait. */
const WAITED = ["barrier_timeout", "reply_timeout"];

export class Transport {
  readonly connection: Connection;
  readonly #agent: HttpAgent;
  readonly #request: typeof httpRequest;

  constructor(connection: Connection) {
    this.connection = connection;
    const isSecure = connection.url.startsWith("https:");
    this.#request = isSecure ? httpsRequest : httpRequest;
    const tls = connection.ca === null ? {} : { ca: connection.ca };
    this.#agent = isSecure ? new HttpsAgent({ keepAlive: true, ...tls }) : new HttpAgent({ keepAlive: true });
  }

  /** Ends the connections that nothing uses. */
  close(): void {
    this.#agent.destroy();
  }

  /** Sends a call until it is answered and the answer, a success, is read. Throws what errors.ts has. */
  async send<T>(sent: Sent, read: (answer: Answer) => T | Promise<T>, options: CallOptions = {}): Promise<T> {
    const deadline = performance.now() + (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const isRepeatable = !isStream(sent.body);
    let key = options.idempotencyKey ?? randomUUID();
    let attempt = 0;
    let mayBeDone = false;
    for (;;) {
      const retry = await this.#try(sent, key, deadline, read, options);
      if ("value" in retry) return retry.value;
      // What is carried out is waited for, however long it takes.
      if (retry.known !== "running") attempt++;
      if (!retry.isWorthIt || !isRepeatable || attempt === TRIES) throw retry.error;
      if (retry.known === "lost") mayBeDone = true;
      else if (retry.known === "refused" || (retry.known === "turned_away" && !mayBeDone)) {
        key = options.idempotencyKey ?? randomUUID();
        mayBeDone = false;
      }
      const pause = retry.afterMs ?? Math.random() * Math.min(PAUSE_MS.first * 2 ** attempt, PAUSE_MS.most);
      if (performance.now() + pause > deadline) throw retry.error;
      await delay(pause, options.signal);
    }
  }

  async #try<T>(
    sent: Sent,
    key: string,
    deadline: number,
    read: (answer: Answer) => T | Promise<T>,
    options: CallOptions,
  ): Promise<{ value: T } | Failed> {
    const ended = new AbortController();
    const timer = setTimeout(
      () => ended.abort(new TimeoutError("The service has not answered in time.")),
      Math.max(0, deadline - performance.now()),
    );
    const stop = () => ended.abort(options.signal?.reason);
    options.signal?.addEventListener("abort", stop, { once: true });
    let answer: Answer;
    try {
      options.signal?.throwIfAborted();
      answer = await this.#once(sent, key, ended.signal, options.headers);
      const isAnswer = answer.status < 300 || (sent.answers?.includes(answer.status) && isJson(answer));
      if (isAnswer) return { value: await read(answer) };
    } catch (error) {
      ended.signal.throwIfAborted();
      return { error: unreachable(this.connection.url, error), isWorthIt: true, known: "lost" };
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", stop);
    }
    const problem = await problemOf(answer).catch(() => null);
    const afterMs = retryAfterOf(answer);
    if (problem === null) {
      const error = new ConnectionError(`${this.connection.url} answered ${answer.status}, but it is not roomd.`);
      return { error, isWorthIt: PASSING.includes(answer.status), known: "lost", ...afterMs };
    }
    const isWorthIt = problem.retryable && !WAITED.includes(problem.code);
    return { error: problemError(problem), isWorthIt, known: knownOf(problem), ...afterMs };
  }

  /** Resolves with the beginning of an answer, whatever it is. */
  #once(sent: Sent, key: string, signal: AbortSignal, headers: Record<string, string> = {}): Promise<Answer> {
    const { connection } = this;
    return new Promise((resolve, reject) => {
      const request = this.#request(`${connection.url}${sent.path}`, {
        method: sent.method,
        agent: this.#agent,
        headers: {
          "User-Agent": `roomd-sdk/${VERSION}`,
          Accept: "application/json",
          ...(connection.key === null ? {} : { Authorization: `Bearer ${connection.key}` }),
          ...(sent.method === "POST" ? { "Idempotency-Key": key } : {}),
          ...sent.headers,
          ...headers,
        },
      });
      const stop = () => request.destroy(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
      request.on("close", () => signal.removeEventListener("abort", stop));
      request.on("error", reject);
      request.on("response", (body: IncomingMessage) => {
        // Whoever reads it hears of it.
        body.on("error", () => {});
        resolve({ status: body.statusCode ?? 0, headers: body.headers, body });
      });
      write(request, sent.body).catch((error) => request.destroy(error));
    });
  }
}

/**
 * What is known of a try that failed: nothing; that an earlier one is still carried out; that this one was not looked at; that nothing
 * was done, and that this answer is kept under its key.
 */
type Known = "lost" | "running" | "turned_away" | "refused";

interface Failed {
  error: Error;
  /** Whether another try may succeed. */
  isWorthIt: boolean;
  known: Known;
  afterMs?: number;
}

function knownOf({ status, code }: Problem): Known {
  if (status >= 500) return "lost";
  if (code === "idempotency_in_progress") return "running";
  // The rate is looked at before the key is.
  return code === "rate_limited" ? "turned_away" : "refused";
}

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
    Readable.from(body instanceof Blob ? (body.stream() as unknown as AsyncIterable<Uint8Array>) : body),
    request,
  );
}

const isStream = (body: FileBody | null) =>
  body !== null && typeof body !== "string" && !(body instanceof Uint8Array) && !(body instanceof Blob);

const isJson = ({ headers }: Answer) => headers["content-type"]?.startsWith("application/json") === true;

/** All of an answer's body. Throws ConnectionError when it ends early. */
export async function bytesOf({ body }: Answer): Promise<Buffer> {
  const parts: Buffer[] = [];
  try {
    for await (const part of body) parts.push(part as Buffer);
  } catch (error) {
    throw new ConnectionError("The connection broke before the answer was complete.", { cause: error });
  }
  if (!body.complete) throw new ConnectionError("The connection broke before the answer was complete.");
  return Buffer.concat(parts);
}

/** What the service says is wrong; null where it is not the service that answers. */
async function problemOf(answer: Answer): Promise<Problem | null> {
  const isProblem = answer.headers["content-type"]?.startsWith("application/problem+json") === true;
  const isTooLong = Number(answer.headers["content-length"] ?? 0) > MOST_PROBLEM_BYTES;
  if (!isProblem || isTooLong) {
    answer.body.destroy();
    return null;
  }
  return JSON.parse((await bytesOf(answer)).toString()) as Problem;
}

function retryAfterOf({ headers }: Answer): { afterMs?: number } {
  const seconds = Number(headers["retry-after"]);
  return Number.isFinite(seconds) && headers["retry-after"] !== undefined ? { afterMs: seconds * 1000 } : {};
}

function unreachable(url: string, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/.test(code)) {
    return new ConnectionError(
      `The certificate of ${url} is not trusted (${message}). Put the service's certificate file in ROOMD_CA_CERT.`,
      { cause: error },
    );
  }
  return new ConnectionError(
    `No service answers at ${url} (${message}). Is it running, and is ROOMD_URL its address?`,
    {
      cause: error,
    },
  );
}

/** Waits; rejects with the signal's reason. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
