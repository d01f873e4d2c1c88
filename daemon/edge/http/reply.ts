/** Owns how the road's replies become HTTP responses. */
import type { Problem } from "../../../shared/api/errors.ts";
import type { BytesReply } from "../../core/operation.ts";
import type { Rate } from "../rate-limit.ts";
import type { RoadReply } from "../run.ts";
import { eventsResponse } from "./events.ts";

/** `accept` is the request's header of that name. */
export function toResponse(reply: RoadReply, requestId: string, accept: string | null): Response {
  const headers = new Headers({ "X-Request-Id": requestId, "Cache-Control": "no-store" });
  setRate(headers, reply.rate);
  if (reply.replayed) headers.set("Idempotency-Replayed", "true");
  if (reply.kind === "problem") return problemResponse(reply.problem, headers, reply.retry_after_seconds);
  if (reply.location !== null) headers.set("Location", reply.location);
  const { bytes, events, unchanged, body } = reply.done;
  if (unchanged) {
    headers.set("ETag", unchanged.etag);
    return new Response(null, { status: 304, headers });
  }
  if (bytes) return bytesResponse(bytes, headers);
  if (events) return eventsResponse(events, accept, headers);
  headers.set("Content-Type", "application/json");
  return new Response(JSON.stringify(body), { status: reply.status, headers });
}

export function setRate(headers: Headers, rate: Rate | null): void {
  if (rate === null) return;
  headers.set("RateLimit-Limit", String(rate.limit));
  headers.set("RateLimit-Remaining", String(rate.remaining));
  headers.set("RateLimit-Reset", String(rate.reset_seconds));
}

export function problemResponse(problem: Problem, headers: Headers, retryAfterSeconds: number | null): Response {
  headers.set("Content-Type", "application/problem+json");
  if (problem.status === 401) headers.set("WWW-Authenticate", "Bearer");
  if (retryAfterSeconds !== null) headers.set("Retry-After", String(Math.ceil(retryAfterSeconds)));
  if (problem.status === 416 && typeof problem.details.size_bytes === "number") {
    headers.set("Content-Range", `bytes */${problem.details.size_bytes}`);
  }
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}

function bytesResponse(bytes: BytesReply, headers: Headers): Response {
  headers.set("Content-Type", "application/octet-stream");
  headers.set("Content-Length", String(bytes.length));
  headers.set("ETag", bytes.etag);
  headers.set("Last-Modified", new Date(bytes.modified_at).toUTCString());
  headers.set("Accept-Ranges", "bytes");
  // A file that an agent wrote must never run in the API's own origin.
  headers.set("Content-Disposition", "attachment");
  headers.set("X-Content-Type-Options", "nosniff");
  if (bytes.partial) {
    headers.set("Content-Range", `bytes ${bytes.offset}-${bytes.offset + bytes.length - 1}/${bytes.size_bytes}`);
  }
  return new Response(bytes.stream, { status: bytes.partial ? 206 : 200, headers });
}
