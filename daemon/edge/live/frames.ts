/** The frames of a live connection. Pure. */

import { operations } from "../../../shared/api/operations.ts";
import { LIVE_OPERATIONS } from "../../../shared/api/overview/live.ts";
import { parseJson } from "../../core/json.ts";
import { matchPath, parsePath } from "../pipeline/route.ts";

export type ClientFrame =
  | { op: "open"; id: number; path: string }
  | { op: "read"; id: number; bytes: number }
  | { op: "close"; id: number };

const MAX_ID = 2 ** 31 - 1;

/** Null for an invalid request. */
export function wantedOf(text: string): ClientFrame | null {
  const fields = objectOf(text);
  if (!fields) return null;
  const { op, id, path, bytes } = fields;
  if (typeof id !== "number" || !Number.isInteger(id) || id < 1 || id > MAX_ID) return null;
  if (op === "close") return { op, id };
  if (op === "read") return typeof bytes === "number" && bytes > 0 ? { op, id, bytes } : null;
  return op === "open" && typeof path === "string" ? { op, id, path } : null;
}

function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = parseJson(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const PATTERNS = LIVE_OPERATIONS.map((name) => parsePath(operations[name].path));

/** The path and query of a stream that a connection carries; null for any other path. */
export function streamPathOf(path: string): string | null {
  const url = URL.parse(path, "http://live.invalid");
  if (url?.host !== "live.invalid" || !path.startsWith("/v1/")) return null;
  return PATTERNS.some((pattern) => matchPath(pattern, url.pathname)) ? url.pathname + url.search : null;
}

const LINE_FEED = 10;

/** A frame with data of a stream: its ID, a line feed, and the bytes. */
export function dataFrame(id: number, bytes: Uint8Array): Uint8Array {
  const head = Buffer.from(String(id));
  const frame = Buffer.allocUnsafeSlow(head.length + 1 + bytes.length);
  frame.set(head);
  frame[head.length] = LINE_FEED;
  frame.set(bytes, head.length + 1);
  return frame;
}
