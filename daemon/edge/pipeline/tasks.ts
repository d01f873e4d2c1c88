/** Computations of the transports that run in the aside thread. */
import { hash } from "node:crypto";
import type { Task } from "../../host/aside/task.ts";
import { parseBody } from "./json-body.ts";
import { JsonComplexity } from "./json-complexity.ts";

/** Parsed in 2 ms at most. */
export const SMALL_BODY_BYTES = 256 * 1024;
/** Maximum body size of any operation or message. */
const MAX_BODY_BYTES = 24 * 1024 * 1024;

export interface ReadBody {
  fields: Record<string, unknown>;
  sha256: string;
}

/** Parses a JSON body and returns its buffer, which may be forwarded. Throws body_too_large, invalid_json, invalid_body. */
export const readBodyAside: Task<{ buffer: ArrayBuffer }, ReadBody & { buffer: ArrayBuffer }> = {
  name: "body.read",
  bytesOf: ({ buffer }) => buffer.byteLength,
  mostBytes: MAX_BODY_BYTES,
  smallBytes: SMALL_BODY_BYTES,
  run: ({ buffer }) => {
    const bytes = new Uint8Array(buffer);
    new JsonComplexity().add(bytes);
    return { fields: parseBody(bytes), sha256: hash("sha256", bytes), buffer };
  },
  buffersOf: ({ buffer }) => [buffer],
};

export const edgeTasks = [readBodyAside];
