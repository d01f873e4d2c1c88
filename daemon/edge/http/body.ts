/** Reads a request's body: bounded, and only as JSON. */
import { hash } from "node:crypto";
import { monotonicMs } from "../../core/clock.ts";
import { within } from "../../core/concurrency/published.ts";
import { loopTime, type OwnerName } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Aside } from "../../host/aside/pool.ts";
import { parseBody } from "../pipeline/json-body.ts";
import { JsonComplexity } from "../pipeline/json-complexity.ts";
import { type ReadBody, readBodyAside, SMALL_BODY_BYTES } from "../pipeline/tasks.ts";

/** The request of a client that sends nothing for this long is aborted. */
const SILENCE_MS = 30_000;
/** Timeout for the whole body: the largest accepted one, 23 MiB, arrives in time at 40 KiB/s. */
const WHOLE_MS = 10 * 60_000;

/** A body of known length up to this is read in one piece, which costs less than a stream. */
const SHORT_BYTES = 16 * 1024;

interface ReadOptions {
  /** The server enforces the declared length. */
  measured?: boolean;
  /** Aborts the read, which then rejects with its reason. */
  over?: AbortSignal | undefined;
  /** For JSON: checks the beginning as it arrives. */
  outline?: JsonComplexity | undefined;
}

/** The pool in which a large JSON body is parsed. */
type JsonOptions = ReadOptions & { aside: Aside };

/** Reads the body's fields; an absent body has none. */
export async function readJsonBody(
  request: Request,
  maxBytes: number,
  options: JsonOptions,
): Promise<ReadBody & { bytes: Uint8Array }> {
  const { owner } = loopTime;
  const bytes = await readBody(request, maxBytes, {
    ...options,
    outline: isJson(request) ? new JsonComplexity() : undefined,
  });
  if (bytes.byteLength === 0) return { fields: {}, sha256: "", bytes };
  requireJson(request);
  if (bytes.byteLength <= SMALL_BODY_BYTES) return { fields: parseBody(bytes), sha256: hash("sha256", bytes), bytes };
  const { buffer, ...read } = await readLarge(bytes, owner, options);
  return { ...read, bytes: new Uint8Array(buffer) };
}

/** Reads the body, which must be a JSON object. */
export async function readJsonMessage(request: Request, maxBytes: number, aside: Aside) {
  requireJson(request);
  const { owner } = loopTime;
  const body = await readBody(request, maxBytes, { measured: true, outline: new JsonComplexity() });
  const bytes = body.byteLength;
  if (bytes <= SMALL_BODY_BYTES) return { message: parseBody(body), bytes };
  return { message: (await readLarge(body, owner, { aside })).fields, bytes };
}

/** Parses a large body in the pool; its buffer is transferred if it holds nothing else. */
function readLarge(bytes: Uint8Array, owner: OwnerName, { aside, over }: JsonOptions) {
  const isOwn = bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength;
  const buffer = isOwn ? (bytes.buffer as ArrayBuffer) : new Uint8Array(bytes).buffer;
  return aside.run(readBodyAside, { buffer }, { owner, signal: over });
}

/** The body's bytes, unparsed, in one buffer. Throws body_too_large, invalid_body. */
export async function readBody(
  request: Request,
  maxBytes: number,
  { measured = false, over, outline }: ReadOptions,
): Promise<Uint8Array> {
  const tooLarge = () =>
    new ServiceError("body_too_large", {
      detail: `The body is over ${maxBytes} bytes.`,
      details: { max_bytes: maxBytes },
    });
  const length = request.headers.get("content-length");
  if (Number(length ?? 0) > maxBytes) throw tooLarge();
  const isShort = measured && length !== null && Number(length) <= SHORT_BYTES;
  return await readBytes(request, isShort, maxBytes, tooLarge, { over, outline });
}

function requireJson(request: Request): void {
  if (!isJson(request)) throw new ServiceError("unsupported_media_type");
}

function isJson({ headers }: Request): boolean {
  return headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() === "application/json";
}

async function readBytes(
  request: Request,
  isShort: boolean,
  maxBytes: number,
  tooLarge: () => ServiceError,
  { over, outline }: Pick<ReadOptions, "over" | "outline">,
) {
  let reader: { cancel(): Promise<void> } | undefined;
  try {
    if (isShort) {
      const bytes = await unlessOver(within(request.bytes(), SILENCE_MS, "the body"), over);
      outline?.add(bytes);
      return bytes;
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    const parts = request.body?.getReader();
    reader = parts;
    const end = monotonicMs() + WHOLE_MS;
    while (parts) {
      const leftMs = Math.min(SILENCE_MS, end - monotonicMs());
      const { done, value } = await unlessOver(within(parts.read(), leftMs, "the next part of the body"), over);
      if (done) break;
      size += value.byteLength;
      if (size > maxBytes) throw tooLarge();
      if (size <= SMALL_BODY_BYTES) outline?.add(value);
      chunks.push(value);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    reader?.cancel().catch(() => {});
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("invalid_body", { detail: "The body ended early.", cause: error });
  }
}

/** Resolves with `coming`, or rejects with the reason of `over`. */
async function unlessOver<T>(coming: Promise<T>, over: AbortSignal | undefined): Promise<T> {
  if (!over) return await coming;
  const ended = Promise.withResolvers<never>();
  const end = () => ended.reject(over.reason);
  // The rejection may be unobserved.
  ended.promise.catch(() => {});
  over.addEventListener("abort", end, { once: true });
  try {
    over.throwIfAborted();
    return await Promise.race([coming, ended.promise]);
  } finally {
    over.removeEventListener("abort", end);
  }
}
