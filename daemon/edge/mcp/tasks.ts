/** Computations of the MCP transport that run in the aside thread. */
import { parsed } from "../../core/call/operation.ts";
import type { Task } from "../../host/aside/task.ts";
import { bounded, boundedInbox, type Inbox } from "./shorten.ts";

/** A page of 1,000 messages with the largest payloads, as JSON. */
const MAX_REPLY_BYTES = 512 * 1024 * 1024;
/** Parsed and shortened in 2 ms at most. */
export const SMALL_REPLY_BYTES = 64 * 1024;

export interface ShortReply {
  body: Record<string, unknown>;
  /** Size and number of items of the whole body; null if it is no list. */
  whole: { bytes: number; items: number | null };
}

/** Parses a long body of an operation, and returns the part that fits an answer. */
export const shortenAside: Task<{ buffer: ArrayBuffer; most: number; isInbox: boolean }, ShortReply> = {
  name: "mcp.shorten",
  bytesOf: ({ buffer }) => buffer.byteLength,
  mostBytes: MAX_REPLY_BYTES,
  smallBytes: SMALL_REPLY_BYTES,
  run: ({ buffer, most, isInbox }) => {
    const bytes = buffer.byteLength;
    const body = parsed<Record<string, unknown> & Inbox>({ bytes: new Uint8Array(buffer) });
    const short = isInbox ? { ...boundedInbox(body, most) } : bounded(body, most);
    return { body: short, whole: { bytes, items: Array.isArray(body.items) ? body.items.length : null } };
  },
  buffersOf: (value) => ("buffer" in value ? [value.buffer] : []),
};

export const mcpTasks = [shortenAside];
