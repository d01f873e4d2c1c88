/** Turns the pipeline's replies into HTTP responses. */
import type { Problem } from "../../../shared/api/errors.ts";
import { FILE_POLICY, HOST_HEADER } from "../../../shared/api/headers.ts";
import { spelled, type Terms } from "../../../shared/api/spelling.ts";
import type { BytesReply } from "../../core/call/operation.ts";
import { jsonPieces, LONG_TEXT, textStream } from "../../core/call/text-stream.ts";
import type { PipelineReply } from "../pipeline/pipeline.ts";
import type { Rate } from "../pipeline/rate-limit.ts";
import { eventsResponse } from "./events.ts";

/** Headers of a response under construction: the server reads one object faster than `Headers` that are changed. */
export type HeaderFields = Record<string, string>;

/** The headers of every response: `host` is the name of this host. */
export function usualHeaders(requestId: string, host: string): HeaderFields {
  return { "X-Request-Id": requestId, [HOST_HEADER]: host, "Cache-Control": "no-store" };
}

/** `accept` is the request's Accept header. */
export function toResponse(
  reply: PipelineReply,
  requestId: string,
  host: string,
  accept: string | null,
  terms?: Terms,
): Response {
  if (reply.kind === "done" && reply.done.answer) return reply.done.answer;
  const headers = usualHeaders(requestId, host);
  // An invalid or revoked key has no rate.
  if (reply.status !== 401) addRate(headers, reply.rate);
  if (reply.replayed) headers["Idempotency-Replayed"] = "true";
  if (reply.kind === "problem") return problemResponse(reply.problem, headers, reply.retry_after_seconds, terms);
  if (reply.location !== null) headers.Location = reply.location;
  const { bytes, text, picture, stream, events, unchanged, body, json: written } = reply.done;
  if (unchanged) {
    headers.ETag = unchanged.etag;
    return new Response(null, { status: 304, headers });
  }
  if (bytes) return bytesResponse(bytes, headers);
  if (events) return eventsResponse(events, accept, headers);
  if (picture || stream) {
    const type = stream?.type ?? "image/png";
    headers["Content-Type"] = type;
    if (type !== "application/json") headers["X-Content-Type-Options"] = "nosniff";
    return new Response(stream?.bytes ?? picture, { status: reply.status, headers });
  }
  if (text) {
    headers["Content-Type"] = text.type;
    return new Response(text.text, { status: reply.status, headers });
  }
  headers["Content-Type"] = "application/json";
  if (written) return new Response(written.bytes, { status: reply.status, headers });
  const json = body && hasLongText(body) ? textStream(jsonPieces(body)) : JSON.stringify(body);
  return new Response(json, { status: reply.status, headers });
}

function hasLongText(body: object): boolean {
  for (const value of Object.values(body)) if (typeof value === "string" && value.length > LONG_TEXT) return true;
  return false;
}

export function setAll(headers: Headers, fields: HeaderFields): Headers {
  for (const [name, value] of Object.entries(fields)) headers.set(name, value);
  return headers;
}

/** Adds the key's remaining rate. */
export function addRate(headers: HeaderFields, rate: Rate | null): HeaderFields {
  if (rate === null) return headers;
  headers["RateLimit-Limit"] = String(rate.limit);
  headers["RateLimit-Remaining"] = String(rate.remaining);
  headers["RateLimit-Reset"] = String(rate.reset_seconds);
  return headers;
}

/** Hints use the terms of HTTP by default. */
export function problemResponse(
  problem: Problem,
  headers: HeaderFields,
  retryAfterSeconds: number | null,
  terms: Terms = { kind: "http" },
): Response {
  const hint = problem.hint === null ? null : spelled(problem.hint, terms);
  headers["Content-Type"] = "application/problem+json";
  if (problem.status === 401) headers["WWW-Authenticate"] ??= "Bearer";
  if (retryAfterSeconds !== null) headers["Retry-After"] = String(Math.ceil(retryAfterSeconds));
  if (problem.status === 416 && typeof problem.details.size_bytes === "number") {
    headers["Content-Range"] = `bytes */${problem.details.size_bytes}`;
  }
  return new Response(JSON.stringify({ ...problem, hint }), { status: problem.status, headers });
}

function bytesResponse(bytes: BytesReply, headers: HeaderFields): Response {
  headers["Content-Type"] = "application/octet-stream";
  headers["Content-Length"] = String(bytes.length);
  headers.ETag = bytes.etag;
  headers["Last-Modified"] = new Date(bytes.modified_at).toUTCString();
  headers["Accept-Ranges"] = "bytes";
  // A file that an agent wrote must never run in the API's own origin.
  headers["Content-Disposition"] = "attachment";
  headers["X-Content-Type-Options"] = "nosniff";
  headers["Content-Security-Policy"] = FILE_POLICY;
  if (bytes.partial) {
    headers["Content-Range"] = `bytes ${bytes.offset}-${bytes.offset + bytes.length - 1}/${bytes.size_bytes}`;
  }
  return new Response(bytes.stream, { status: bytes.partial ? 206 : 200, headers });
}
