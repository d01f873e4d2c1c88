/** Calls of the interface's operations, by name: each takes one object, and returns the answer of the OpenAPI document. */
import { readFileSync } from "node:fs";
import { limited } from "./deadline.ts";
import { ConnectionError, UsageError } from "./errors.ts";
import { OPERATIONS, type OperationRow, type Operations } from "./generated/operations.ts";
import { type EventOptions, follow, type StreamEvent } from "./stream.ts";
import {
  bytesOf,
  type CallOptions,
  type FileBody,
  parsed,
  partsOf,
  type RawResponse,
  type Retry,
  Transport,
} from "./transport.ts";
import { VERSION } from "./version.ts";

/** Name of an operation of the HTTP interface. */
export type OperationName = keyof Operations;
/** Input of an operation: path, query and body together. */
export type Input<Name extends OperationName> = Operations[Name]["input"];
/** Response of an operation. */
export type Result<Name extends OperationName> = Operations[Name]["answer"];

interface StreamRow {
  /** The event field that has its position. */
  place: string;
  /** Whether it is the last event. A stream with a regular end has one; otherwise it was interrupted. */
  isLast(event: Record<string, unknown>): boolean;
}

const isExit = ({ type }: Record<string, unknown>) => type === "exit";

const STREAMS = {
  execution_stream: { place: "seq", isLast: isExit },
  template_build_stream: { place: "seq", isLast: isExit },
  terminal_watch: { place: "offset", isLast: isExit },
  room_events: {
    place: "seq",
    isLast: ({ event, outcome }) => event === "room.destroyed" && outcome === "success",
  },
  org_events: { place: "cursor", isLast: () => false },
  sandbox_file_watch: { place: "cursor", isLast: () => false },
  // Its events have no position: a new connection starts with the whole state.
  room_now: { place: "cursor", isLast: () => false },
} satisfies Partial<Record<OperationName, StreamRow>>;
export type StreamName = keyof typeof STREAMS;

/** Operations that take a file as their body. */
type UploadName = "file_put" | "sandbox_file_put";

/** Options of a client. */
export interface ClientOptions {
  /** URL of the service; ROOMD_URL by default, or http://127.0.0.1:8080. */
  url?: string;
  /** API key; ROOMD_API_KEY by default. A function is called before every attempt, for tokens that expire; null is no key. */
  apiKey?: string | (() => Promise<string | null>);
  /** Certificates to trust, as PEM; by default those of the file named by ROOMD_CA_CERT. */
  ca?: string;
  /**
   * Trace context that calls continue, or a function that returns it; by default TRACEPARENT, which is set for commands of a traced call.
   */
  traceparent?: string | (() => string | undefined);
  /** User-Agent header; roomd-sdk and its version by default. */
  userAgent?: string;
  /** Environment with HTTP_PROXY, HTTPS_PROXY and NO_PROXY, such as process.env; no proxy by default. Bun, and Node 24.5 or later. */
  proxyEnv?: Record<string, string | undefined>;
  /** Retry policy of calls without one of their own; by default up to six attempts after any transient failure. */
  retry?: Retry;
}

/** A response with its body and status. */
export interface Reply<T> {
  /** The parsed response. */
  value: T;
  /** The body, unparsed. */
  text: string;
  /** HTTP status. */
  status: number;
}

/** Options of `download`. */
export interface DownloadOptions extends CallOptions {
  /** Longest silence within a download in ms; 60 s by default. */
  silentMs?: number;
}

/** A file during its download. It can be read once, by one of `stream`, `bytes` and `text`. */
export interface Download {
  /** Number of bytes that follow; null if it is unknown. */
  size: number | null;
  /** ETag of the file. */
  etag: string | null;
  /** The bytes as they arrive. */
  stream: AsyncIterable<Uint8Array>;
  /** All bytes. */
  bytes(): Promise<Uint8Array>;
  /** All bytes as text. */
  text(): Promise<string>;
  /** Closes the download's connection, whether or not it was read. The signal does the same. */
  close(): void;
  /** Closes the download's connection at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** An unhealthy service answers with the same body. */
const ALSO_ANSWERS: Partial<Record<OperationName, readonly number[]>> = { health: [503] };
/** Maximum silence between two parts of a file; the whole may take any time. */
const DEFAULT_SILENT_MS = 60_000;
const LOCAL = "http://127.0.0.1:8080";

/** Names of the options of a client. */
export const CLIENT_OPTIONS: Record<keyof ClientOptions, true> = {
  url: true,
  apiKey: true,
  ca: true,
  traceparent: true,
  userAgent: true,
  proxyEnv: true,
  retry: true,
};

/** Calls the operations of the service by name, with retries and idempotency. */
export class Client {
  readonly #transport: Transport;

  /** Connects to a service. Options that are absent come from the environment. */
  constructor(options: ClientOptions = {}) {
    const { ROOMD_URL, ROOMD_API_KEY, ROOMD_CA_CERT, TRACEPARENT } = process.env;
    const traceparent = options.traceparent ?? TRACEPARENT;
    const given = options.url ?? (ROOMD_URL || LOCAL);
    if (!/^https?:/.test(given) || !URL.canParse(given))
      throw new UsageError(`${given} is not a URL such as ${LOCAL}.`);
    this.#transport = new Transport({
      url: new URL(given).href.replace(/\/+$/, ""),
      key: typeof options.apiKey === "function" ? keySource(options.apiKey) : keyOf(options.apiKey ?? ROOMD_API_KEY),
      ca: options.ca ?? (ROOMD_CA_CERT ? readFileSync(ROOMD_CA_CERT, "utf8") : null),
      ...(traceparent === undefined ? {} : { traceparent }),
      userAgent: options.userAgent ?? `roomd-sdk/${VERSION}`,
      proxyEnv: options.proxyEnv ?? null,
      retry: options.retry ?? { after: "any" },
    });
  }

  /** URL of the service. */
  get url(): string {
    return this.#transport.connection.url;
  }

  /** Certificates to trust instead of the system's, as PEM; null: the system's. */
  get ca(): string | null {
    return this.#transport.connection.ca;
  }

  /** Calls an operation with a JSON or text response. */
  async call<Name extends OperationName>(
    name: Name,
    input: Input<Name>,
    options: CallOptions = {},
  ): Promise<Result<Name>> {
    return (await this.reply(name, input, options)).value;
  }

  /** As `call`, with the status and the unparsed body. `body` is a file to send, as in `upload`. */
  async reply<Name extends OperationName>(
    name: Name,
    input: Input<Name>,
    { body, ...options }: CallOptions & { body?: FileBody } = {},
  ): Promise<Reply<Result<Name>>> {
    const { answer } = OPERATIONS[name];
    if (answer !== "json" && answer !== "text")
      throw new UsageError(`${name} answers ${answer}: use ${OTHER_CALLS[answer]}.`);
    const read = async (answered: RawResponse) => {
      const text = (await bytesOf(answered)).toString();
      const value = (answer === "json" ? this.#json(answered, text) : text) as Result<Name>;
      return { value, text, status: answered.status };
    };
    const sent = this.#sent(name, input);
    const missing = { value: {} as Result<Name>, text: "{}", status: 200 };
    return this.#transport.send(
      body === undefined ? sent : { ...sent, headers: FILE_TYPE, body },
      read,
      options,
      missing,
    );
  }

  /** Yields the events of a stream, after `after`. Reconnects if the connection is lost; pings are left out. */
  async *events<Name extends StreamName>(
    name: Name,
    input: Input<Name>,
    options: EventOptions = {},
  ): AsyncGenerator<Exclude<Result<Name>, { type: "ping" | "error" }>> {
    const { given, done } = limited(options, "The stream has not ended in time.");
    const { waitMs: _wait, timeoutMs: _, ...each } = options;
    try {
      yield* this.#events(name, input, { ...each, ...given });
    } finally {
      done();
    }
  }

  #events<Name extends StreamName>(
    name: Name,
    input: Input<Name>,
    { signal, retry = this.#transport.connection.retry, onCut }: EventOptions,
  ): AsyncGenerator<Exclude<Result<Name>, { type: "ping" | "error" }>> {
    const { place, isLast }: StreamRow = STREAMS[name];
    type Told = Exclude<Result<Name>, { type: "ping" | "error" }> & StreamEvent & Record<string, unknown>;
    return follow<Told, string | number>({
      open: (after, timeoutMs) => {
        const from = after === undefined ? input : { ...input, after };
        const sent = this.#sent(name, from as Input<Name>);
        const headers = { ...sent.headers, Accept: "application/x-ndjson" };
        const options = {
          retry: after === undefined ? retry : ANY,
          ...(signal ? { signal } : {}),
          ...(timeoutMs === undefined ? {} : { timeoutMs }),
        };
        return this.#transport.send({ ...sent, headers }, (answer) => answer, options);
      },
      placeOf: (event) => placeOf(event, place),
      isLast,
      mayEnd: (input as { follow?: boolean }).follow === false,
      isPlaced: (input as { after?: unknown }).after !== undefined,
      retry,
      hasAnswered: () => this.#transport.hasAnswered,
      ...(signal ? { signal } : {}),
      ...(onCut ? { onCut } : {}),
    });
  }

  /** URL for a WebSocket of this operation. The key has to be in the Authorization header. */
  socketUrl(name: OperationName, input: object): string {
    return this.url.replace(/^http/, "ws") + this.#sent(name, input as never).path;
  }

  /** Streams a file. A connection that breaks after the start is resumed at the same byte. */
  async download(
    name: OperationName,
    input: object,
    { silentMs = DEFAULT_SILENT_MS, ...options }: DownloadOptions = {},
  ): Promise<Download> {
    const read = (answer: RawResponse) => downloadOf(answer, silentMs, options.signal);
    return this.#transport.send(this.#file(name, input), read, options);
  }

  /** Reads a whole file; starts over if the connection breaks. */
  async bytes(name: OperationName, input: object, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#transport.send(this.#file(name, input), (answer) => bytesOf(answer), options);
  }

  /** Sends a file; sends it again if the connection breaks, except for a stream, which can be read only once. */
  async upload<Name extends UploadName>(
    name: Name,
    input: Input<Name>,
    body: FileBody,
    options: CallOptions = {},
  ): Promise<Result<Name>> {
    return (await this.reply(name, input, { ...options, body })).value;
  }

  /** Yields every item of a list, page by page. */
  async *items<Name extends ListName>(
    name: Name,
    input: Input<Name>,
    options: CallOptions = {},
  ): AsyncGenerator<Result<Name>["items"][number]> {
    let cursor: string | null | undefined;
    do {
      const page: Result<Name> = await this.call(
        name,
        { ...input, ...(cursor ? { cursor } : {}) } as Input<Name>,
        options,
      );
      yield* page.items;
      cursor = (page as { next_cursor?: string | null }).next_cursor;
    } while (cursor);
  }

  /** Closes all connections; pending calls fail. */
  close(): void {
    this.#transport.close();
  }

  #file(name: OperationName, input: object) {
    const sent = this.#sent(name, input as never);
    return { ...sent, headers: { ...sent.headers, Accept: "*/*" } };
  }

  #json(answer: RawResponse, text: string): unknown {
    const { status, headers } = answer;
    const { url } = this;
    if (headers["content-type"]?.startsWith("application/json")) return parsed(text, answer, url);
    // An empty body is the rest of a truncated answer.
    if (text === "") throw new ConnectionError(`${url} gave no answer.`, { url });
    throw new ConnectionError(`${url} answered ${status}, but it is not roomd.`, { fault: "foreign", url, status });
  }

  #sent<Name extends OperationName>(name: Name, input: Input<Name>) {
    return { ...requestOf(OPERATIONS[name], input as Record<string, unknown>), answers: ALSO_ANSWERS[name] ?? [] };
  }
}

/** Operations that answer a list. */
export type ListName = {
  [Name in OperationName]: Operations[Name]["answer"] extends { items: unknown[] } ? Name : never;
}[OperationName];

const FILE_TYPE = { "Content-Type": "application/octet-stream" };
const ANY: Retry = { after: "any" };
const OTHER_CALLS = { events: "events()", bytes: "download()", socket: "a WebSocket" } as const;

/** Distributes the fields of an input over path, query and body. */
function requestOf(row: OperationRow, input: Record<string, unknown>) {
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined || row.path.includes(`{${name}}`)) continue;
    if (row.query?.includes(name)) query.set(name, String(value));
    else body[name] = value;
  }
  const path = row.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(input[name]);
    // The rest of a path contains slashes.
    return name === "path" ? value.replace(/^\/+/, "").split("/").map(segment).join("/") : segment(value);
  });
  const isJson = row.body === "json";
  return {
    method: row.method,
    path: query.size > 0 ? `${path}?${query}` : path,
    headers: isJson ? { "Content-Type": "application/json" } : ({} as Record<string, string>),
    body: isJson ? JSON.stringify(body) : null,
  };
}

/**
 * A segment of a URL's path. Throws for . and .., which would change the path: they are resolved before the service sees them, in any
 * encoding.
 */
function segment(text: string): string {
  if (text === "." || text === "..") throw new UsageError(`A path may not have ${text} in it.`);
  return encodeURIComponent(text);
}

/** Throws if the key is invalid; the message does not contain it. */
function keyOf(given: string | undefined): string | null {
  const key = given?.trim() || null;
  if (key !== null && !/^[\x21-\x7e]+$/.test(key)) throw new UsageError("The API key has invalid characters.");
  return key;
}

const keySource = (apiKey: () => Promise<string | null>) => async () => keyOf((await apiKey()) ?? undefined);

function placeOf(event: Record<string, unknown>, name: string): string | number | undefined {
  const place = event[name];
  // A terminal's position counts bytes: the next one is after this event's bytes.
  if (name === "offset" && typeof place === "number") return place + decodedLength(event.data_b64);
  return typeof place === "number" || typeof place === "string" ? place : undefined;
}

function decodedLength(base64: unknown): number {
  return typeof base64 === "string" ? Buffer.byteLength(base64, "base64") : 0;
}

function downloadOf(answer: RawResponse, silentMs: number, signal?: AbortSignal): Download {
  const { headers, body } = answer;
  const size = headers["content-length"];
  // A stream reacts to the signal only once it is read.
  const close = () => void body.destroy();
  signal?.addEventListener("abort", close, { once: true });
  body.once("close", () => signal?.removeEventListener("abort", close));
  const stream = partsOf(answer, silentMs, signal);
  const bytes = async () => {
    const parts: Uint8Array[] = [];
    for await (const part of stream) parts.push(part);
    return Buffer.concat(parts);
  };
  return {
    size: size === undefined ? null : Number(size),
    etag: headers.etag ?? null,
    stream,
    bytes,
    text: async () => (await bytes()).toString(),
    close,
    [Symbol.asyncDispose]: async () => close(),
  };
}
