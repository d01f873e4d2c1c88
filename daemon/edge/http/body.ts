/** Owns how a request's body is read: bounded, and only as JSON. */
import { createHash } from "node:crypto";
import { within } from "../../core/published.ts";
import { ServiceError } from "../../core/service-error.ts";

/** A client that sends nothing for so long has its request ended. */
const SILENCE_MS = 30_000;
/** For all of it: the largest that any operation takes, 23 MiB, comes within that at 40 KiB a second. */
const WHOLE_MS = 10 * 60_000;

/** Reads the body's fields; an absent body has none. */
export async function readJsonBody(
  request: Request,
  maxBytes: number,
): Promise<{ fields: Record<string, unknown>; sha256: string }> {
  const tooLarge = () =>
    new ServiceError("body_too_large", {
      detail: `The body is over ${maxBytes} bytes.`,
      details: { max_bytes: maxBytes },
    });
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  const end = performance.now() + WHOLE_MS;
  try {
    while (reader) {
      const leftMs = Math.min(SILENCE_MS, end - performance.now());
      const { done, value } = await within(reader.read(), leftMs, "the next part of the body");
      if (done) break;
      size += value.byteLength;
      if (size > maxBytes) throw tooLarge();
      chunks.push(value);
    }
  } catch (error) {
    reader?.cancel().catch(() => {});
    if (error instanceof ServiceError) throw error;
    throw new ServiceError("invalid_body", { detail: "The body ended early.", cause: error });
  }
  if (size === 0) return { fields: {}, sha256: "" };
  const mediaType = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (mediaType !== "application/json") throw new ServiceError("unsupported_media_type");
  const bytes = Buffer.concat(chunks);
  const fields = parseObject(bytes);
  return { fields, sha256: createHash("sha256").update(bytes).digest("hex") };
}

function parseObject(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    const what = error instanceof SyntaxError ? "JSON" : "UTF-8 text";
    throw new ServiceError("invalid_json", { detail: `The body is not valid ${what}.` });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ServiceError("invalid_body", { detail: "The body must be a JSON object." });
  }
  return value as Record<string, unknown>;
}
