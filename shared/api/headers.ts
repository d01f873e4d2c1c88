/**
 * HTTP headers of the interface, in addition to HTTP's own: on which requests and answers each occurs. The transports and the OpenAPI
 * document are derived from this file; tests check answers against it.
 */
import { REQUEST_ID_PATTERN } from "../ids.ts";
import { TRACEPARENT } from "../traceparent.ts";
import { type ErrorCode, errorKind } from "./errors.ts";

/** How long the response to an Idempotency-Key is stored. */
export const IDEMPOTENCY_SECONDS = 24 * 3600;
/** Maximum number of stored calls with a key per organization, the newest: several hundred MB with their indexes. */
export const MAX_IDEMPOTENT_CALLS = 250_000;
export const MAX_IDEMPOTENCY_KEY = 255;
export const IDEMPOTENCY_KEY_PATTERN = `^[\\x21-\\x7e]{1,${MAX_IDEMPOTENCY_KEY}}$`;

const REQUEST_ID = { type: "string", pattern: REQUEST_ID_PATTERN };
const TEXT = { type: "string" };
const COUNT = { type: "integer", minimum: 0 };

interface DocumentedHeader {
  name: string;
  description: string;
  schema: object;
  example: string | number;
}

/** By the names that verbs use. The key is the document's security scheme, and Accept chooses among an answer's media types. */
export const REQUEST_HEADERS = {
  request_id: {
    name: "X-Request-Id",
    description:
      "The caller's own id for the call; it appears in the answer, the audit and the log. If it is not valid, roomd makes one.",
    schema: REQUEST_ID,
    example: "nightly-7",
  },
  idempotency_key: {
    name: "Idempotency-Key",
    description: `Makes the call safe to retry: with the same key and body it gets the first call's answer and has no further effect. Stored for ${IDEMPOTENCY_SECONDS / 3600} hours, for this API key, method and path, unless the organization has made ${MAX_IDEMPOTENT_CALLS.toLocaleString("en")} newer calls with a key.`,
    schema: { type: "string", pattern: IDEMPOTENCY_KEY_PATTERN },
    example: "build-42-worker-1",
  },
  traceparent: {
    name: TRACEPARENT,
    description:
      "The call's position in a trace (W3C Trace Context): its records name the trace, and the commands and messages that it starts continue it. An invalid value is ignored.",
    schema: { type: "string" },
    example: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  },
  range: {
    name: "Range",
    description: "One range of bytes, answered with 206. Several ranges, or other units, get the whole file.",
    schema: TEXT,
    example: "bytes=0-1023",
  },
  if_match: {
    name: "If-Match",
    description: "Only if the file has one of these ETags, or with * only if it exists; else 412.",
    schema: TEXT,
    example: "*",
  },
  if_none_match: {
    name: "If-None-Match",
    description:
      "Only if the file has none of these ETags, or with * only if it does not exist. Otherwise reading gets 304, and writing 412.",
    schema: TEXT,
    example: "*",
  },
  last_event_id: {
    name: "Last-Event-ID",
    description: "Position at which an interrupted stream stopped, as sent by browsers: the same as `after`.",
    schema: TEXT,
    example: "41",
  },
  websocket_protocol: {
    name: "Sec-WebSocket-Protocol",
    description: "The protocol, and the token of a terminal or the ticket of a screen instead of an API key.",
    schema: TEXT,
    example: "roomd.terminal, roomd.token.TOKEN",
  },
} as const satisfies Record<string, DocumentedHeader>;
export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** Headers that an operation declares; the others belong to the pipeline. */
export type OwnHeader = Exclude<RequestHeader, "request_id" | "idempotency_key" | "traceparent">;

/** Parts of an operation on which its headers depend. */
interface HeaderSource {
  method: string;
  headers?: readonly OwnHeader[];
  outcomes: Record<string, number>;
  location?: string;
  bytesOutput?: string[];
  errors: readonly ErrorCode[];
}

export function takesIdempotencyKey({ method }: Pick<HeaderSource, "method">): boolean {
  return method === "POST";
}

export function requestHeadersOf(operation: HeaderSource): RequestHeader[] {
  const ofRoad: RequestHeader[] = takesIdempotencyKey(operation)
    ? ["idempotency_key", "request_id", "traceparent"]
    : ["request_id", "traceparent"];
  return [...(operation.headers ?? []), ...ofRoad];
}

/** An answer as the document distinguishes it: its status, and the codes of its problems. */
interface DocumentedAnswer {
  operation: HeaderSource;
  status: number;
  codes: readonly ErrorCode[];
}

interface ResponseHeader extends Omit<DocumentedHeader, "name"> {
  /** Whether every matching response has the header. */
  always?: true;
  on(answer: DocumentedAnswer): boolean;
}

/** The host that answered: part of every answer, including those of MCP and of exposed ports. */
export const HOST_HEADER = "X-Roomd-Host";

/** For a file that an agent wrote: opened directly it has no origin, runs no scripts and loads nothing. */
export const FILE_POLICY = "sandbox; default-src 'none'";

const UNAUTHORIZED = 401;
const PARTIAL = 206;
const NOT_MODIFIED = 304;
const OUT_OF_RANGE = 416;
const SWITCHING_PROTOCOLS = 101;

const isSuccess = ({ operation, status }: DocumentedAnswer) => Object.values(operation.outcomes).includes(status);
const BYTES = "application/octet-stream";
const STREAMS = ["application/x-ndjson", "text/event-stream"];
const sendsFile = ({ operation, status }: DocumentedAnswer) =>
  [200, PARTIAL].includes(status) && (operation.bytesOutput?.includes(BYTES) ?? false);
const isRated = ({ status }: DocumentedAnswer) => status !== UNAUTHORIZED;

export const RESPONSE_HEADERS: Record<string, ResponseHeader> = {
  "X-Request-Id": {
    description: "The call's id, also in the audit and the log.",
    schema: REQUEST_ID,
    example: "req_01KGA0G5A0D4W7K9M2R5V8ZXQP",
    always: true,
    on: () => true,
  },
  [HOST_HEADER]: {
    description: "Name of the host that answered.",
    schema: TEXT,
    example: "host-k3vq7m2xdw5t",
    always: true,
    on: () => true,
  },
  "Cache-Control": {
    description: "Answers must not be cached.",
    schema: { type: "string", enum: ["no-store"] },
    example: "no-store",
    always: true,
    on: () => true,
  },
  "RateLimit-Limit": {
    description: "How many calls the key may make in a burst, if there is a limit.",
    schema: COUNT,
    example: 200,
    on: isRated,
  },
  "RateLimit-Remaining": { description: "How many of these calls are left.", schema: COUNT, example: 199, on: isRated },
  "RateLimit-Reset": {
    description: "Seconds until all of them are available again.",
    schema: COUNT,
    example: 1,
    on: isRated,
  },
  "Idempotency-Replayed": {
    description: "The answer is that of the first call with this Idempotency-Key.",
    schema: { type: "string", enum: ["true"] },
    example: "true",
    on: (answer) =>
      takesIdempotencyKey(answer.operation) &&
      answer.status < 500 &&
      (isSuccess(answer) || answer.codes.some((code) => answer.operation.errors.includes(code))),
  },
  Location: {
    description: "URL of the created resource.",
    schema: { type: "string", format: "uri-reference" },
    example: "/v1/rooms/build-42",
    always: true,
    on: (answer) => answer.operation.location !== undefined && isSuccess(answer),
  },
  "Retry-After": {
    description: "Seconds after which a retry may succeed.",
    schema: COUNT,
    example: 1,
    on: ({ codes }) => codes.some((code) => errorKind(code).retryAfterSeconds !== undefined),
  },
  "WWW-Authenticate": {
    description: "The credentials that a call needs.",
    schema: { type: "string", enum: ["Bearer"] },
    example: "Bearer",
    always: true,
    on: ({ status }) => status === UNAUTHORIZED,
  },
  ETag: {
    description: "The file's current version, for If-Match and If-None-Match.",
    schema: TEXT,
    example: '"Wm3kPz8vQ1c5Yt7Rb2Xn9Ls4Hd6"',
    on: (answer) => sendsFile(answer) || answer.status === NOT_MODIFIED,
  },
  "Last-Modified": {
    description: "When the file was last written, to the second.",
    schema: TEXT,
    example: "Sat, 31 Jan 2026 12:00:00 GMT",
    on: sendsFile,
  },
  "Accept-Ranges": {
    description: "Range works for this file.",
    schema: { type: "string", enum: ["bytes"] },
    example: "bytes",
    on: sendsFile,
  },
  "Content-Range": {
    description: "Which bytes these are, and the file's size; with 416 only the size.",
    schema: TEXT,
    example: "bytes 0-1023/4096",
    always: true,
    on: ({ status }) => status === PARTIAL || status === OUT_OF_RANGE,
  },
  "Content-Disposition": {
    description: "A browser saves the file and never shows it as a page of the service.",
    schema: { type: "string", enum: ["attachment"] },
    example: "attachment",
    on: sendsFile,
  },
  "Content-Security-Policy": {
    description: "If a browser shows the file nevertheless, nothing in it may run or load.",
    schema: { type: "string", enum: [FILE_POLICY] },
    example: FILE_POLICY,
    on: sendsFile,
  },
  "X-Content-Type-Options": {
    description: "A browser must not guess the file's type.",
    schema: { type: "string", enum: ["nosniff"] },
    example: "nosniff",
    on: sendsFile,
  },
  "X-Accel-Buffering": {
    description: "Tells proxies not to buffer the stream.",
    schema: { type: "string", enum: ["no"] },
    example: "no",
    on: ({ operation, status }) =>
      status === 200 && (operation.bytesOutput?.some((type) => STREAMS.includes(type)) ?? false),
  },
  "Sec-WebSocket-Protocol": {
    description: "The subprotocol that was chosen from those offered.",
    schema: TEXT,
    example: "roomd.terminal",
    on: ({ status }) => status === SWITCHING_PROTOCOLS,
  },
};

export function responseHeadersOf(answer: DocumentedAnswer): string[] {
  return Object.entries(RESPONSE_HEADERS).flatMap(([name, { on }]) => (on(answer) ? [name] : []));
}
