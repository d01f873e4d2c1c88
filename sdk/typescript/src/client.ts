/** Owns calls of the interface's operations, by their names: each takes one object, and answers what the OpenAPI document says. */
import { readFileSync } from "node:fs";
import { limited } from "./deadline.ts";
import { ConnectionError, UsageError } from "./errors.ts";
import { OPERATIONS, type OperationRow, type Operations } from "./generated/operations.ts";
import { type EventOptions, follow, type StreamEvent } from "./stream.ts";
import {
  type Answer,
  bytesOf,
  type CallOptions,
  type FileBody,
  parsed,
  partsOf,
  type Retry,
  Transport,
} from "./transport.ts";
import { VERSION } from "./version.ts";

export type OperationName = keyof Operations;
export type Input<Name extends OperationName> = Operations[Name]["input"];
export type Result<Name extends OperationName> = Operations[Name]["answer"];

interface StreamRow {
  /** What names an event's place. */
  place: string;
  /** Whether nothing follows an event. A stream that goes on ends with such a one, or was cut. */
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
} satisfies Partial<Record<OperationName, StreamRow>>;
export type StreamName = keyof typeof STREAMS;

/** Operations that take a file as their body. */
type UploadName = "file_put" | "sandbox_file_put";

export interface ClientOptions {
  /** ROOMD_URL, or http://127.0.0.1:8080, if absent. */
  url?: string;
  /** ROOMD_API_KEY if absent. A function is asked before every try: for tokens that expire, and null for none. */
  apiKey?: string | (() => Promise<string | null>);
  /** Certificates to trust, as PEM; the file that ROOMD_CA_CERT names if absent. */
  ca?: string;
  /** The place in a trace that calls continue, or who knows it; TRACEPARENT, which commands of a traced call have, if absent. */
  traceparent?: string | (() => string | undefined);
  /** What the service is told that the program is; roomd-sdk and its version if absent. */
  userAgent?: string;
  /** Where HTTP_PROXY, HTTPS_PROXY and NO_PROXY are looked for, such as process.env; nowhere if absent. Bun, and Node from 24.5 on. */
  proxyEnv?: Record<string, string | undefined>;
  /** What is tried again, where a call says nothing else; whatever may pass, six times, if absent. */
  retry?: Retry;
}

/** An answer with what it was made of. */
export interface Reply<T> {
  value: T;
  /** The body as it came. */
  text: string;
  status: number;
}

export interface DownloadOptions extends CallOptions {
  /** How long nothing may come of a file that has begun; 60 s if absent. */
  silentMs?: number;
}

export interface Download {
  /** Of what follows; null where it is not told. */
  size: number | null;
  etag: string | null;
  stream: AsyncIterable<Uint8Array>;
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  /** Ends its connection, also where nobody has read it. The signal does so too. */
  close(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** It tells as fully that it is not well. */
const ALSO_ANSWERS: Partial<Record<OperationName, readonly number[]>> = { health: [503] };
/** How long a part of a file may take; the whole may take any time. */
const DEFAULT_SILENT_MS = 60_000;
const LOCAL = "http://127.0.0.1:8080";

export class Client {
  readonly #transport: Transport;

  constructor(options: ClientOptions = {}) {
    const { ROOMD_URL, ROOMD_API_KEY, ROOMD_CA_CERT, TRACEPARENT } = process.env;
    const traceparent = options.traceparent ?? TRACEPARENT;
    const given = options.url ?? (ROOMD_URL || LOCAL);
    if (!/^https?:/.test(given) || !URL.canParse(given))
      throw new UsageError(`${given} is not a URL such as ${LOCAL}.`);
    this.#transport = new Transport({
      url: new URL(given).href.replace(/\/+$/, ""),
      key: typeof options.apiKey === "function" ? asked(options.apiKey) : keyOf(options.apiKey ?? ROOMD_API_KEY),
      ca: options.ca ?? (ROOMD_CA_CERT ? readFileSync(ROOMD_CA_CERT, "utf8") : null),
      ...(traceparent === undefined ? {} : { traceparent }),
      userAgent: options.userAgent ?? `roomd-sdk/${VERSION}`,
      proxyEnv: options.proxyEnv ?? null,
      retry: options.retry ?? { after: "any" },
    });
  }

  get url(): string {
    return this.#transport.connection.url;
  }

  /** Certificates to trust in place of the system's, as PEM; null: the system's. */
  get ca(): string | null {
    return this.#transport.connection.ca;
  }

  /** Calls an operation that answers JSON or text. */
  async call<Name extends OperationName>(
    name: Name,
    input: Input<Name>,
    options: CallOptions = {},
  ): Promise<Result<Name>> {
    return (await this.reply(name, input, options)).value;
  }

  /** The same with the status and the body as they came. `body` is a file to send, as upload() does. */
  async reply<Name extends OperationName>(
    name: Name,
    input: Input<Name>,
    { body, ...options }: CallOptions & { body?: FileBody } = {},
  ): Promise<Reply<Result<Name>>> {
    const { answer } = OPERATIONS[name];
    if (answer !== "json" && answer !== "text")
      throw new UsageError(`${name} answers ${answer}: use ${OTHER_CALLS[answer]}.`);
    const read = async (answered: Answer) => {
      const text = (await bytesOf(answered)).toString();
      const value = (answer === "json" ? this.#json(answered, text) : text) as Result<Name>;
      return { value, text, status: answered.status };
    };
    const sent = this.#sent(name, input);
    const gone = { value: {} as Result<Name>, text: "{}", status: 200 };
    return this.#transport.send(body === undefined ? sent : { ...sent, headers: FILE_TYPE, body }, read, options, gone);
  }

  /** The events of a stream, from `after` on, whatever happens to connections; pings are left out. */
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
      ...(signal ? { signal } : {}),
      ...(onCut ? { onCut } : {}),
    });
  }

  /** Where a WebSocket of this operation is opened; the key goes into its Authorization. */
  socketUrl(name: OperationName, input: object): string {
    return this.url.replace(/^http/, "ws") + this.#sent(name, input as never).path;
  }

  /** A file as it comes. Once it has begun, whoever reads it goes on where it was cut. */
  async download(
    name: OperationName,
    input: object,
    { silentMs = DEFAULT_SILENT_MS, ...options }: DownloadOptions = {},
  ): Promise<Download> {
    const read = (answer: Answer) => downloadOf(answer, silentMs, options.signal);
    return this.#transport.send(this.#file(name, input), read, options);
  }

  /** A whole file; one that was cut is asked for again. */
  async bytes(name: OperationName, input: object, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#transport.send(this.#file(name, input), (answer) => bytesOf(answer), options);
  }

  /** Sends a file. A stream is sent once; all else is sent again where the connection breaks. */
  async upload<Name extends UploadName>(
    name: Name,
    input: Input<Name>,
    body: FileBody,
    options: CallOptions = {},
  ): Promise<Result<Name>> {
    return (await this.reply(name, input, { ...options, body })).value;
  }

  /** Every item of a list, page by page. */
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

  /** Ends all connections: what waits fails. */
  close(): void {
    this.#transport.close();
  }

  #file(name: OperationName, input: object) {
    const sent = this.#sent(name, input as never);
    return { ...sent, headers: { ...sent.headers, Accept: "*/*" } };
  }

  #json(answer: Answer, text: string): unknown {
    const { status, headers } = answer;
    const { url } = this;
    if (headers["content-type"]?.startsWith("application/json")) return parsed(text, answer, url);
    // An empty one is what is left of an answer that was cut.
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

/** The parts of an input by where the operation wants them. */
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
    // The rest of a path has slashes.
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

/** Part of a URL's path. Throws for what would lead elsewhere: . and .. are resolved before the service sees them, in any spelling. */
function segment(text: string): string {
  if (text === "." || text === "..") throw new UsageError(`A path may not have ${text} in it.`);
  return encodeURIComponent(text);
}

/** Throws where it is none, in words that do not show it. */
function keyOf(given: string | undefined): string | null {
  const key = given?.trim() || null;
  if (key !== null && !/^[\x21-\x7e]+$/.test(key)) throw new UsageError("The API key has characters that no key has.");
  return key;
}

const asked = (apiKey: () => Promise<string | null>) => async () => keyOf((await apiKey()) ?? undefined);

function placeOf(event: Record<string, unknown>, name: string): string | number | undefined {
  const place = event[name];
  // A terminal's bytes are counted: what comes next is behind them.
  if (name === "offset" && typeof place === "number") return place + decodedLength(event.data_b64);
  return typeof place === "number" || typeof place === "string" ? place : undefined;
}

function decodedLength(base64: unknown): number {
  return typeof base64 === "string" ? Buffer.byteLength(base64, "base64") : 0;
}

function downloadOf(answer: Answer, silentMs: number, signal?: AbortSignal): Download {
  const { headers, body } = answer;
  const size = headers["content-length"];
  // A stream hears of the signal only once it is read.
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
