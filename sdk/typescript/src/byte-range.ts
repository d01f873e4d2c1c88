/** The part of a file that a read requests. */
import { UsageError } from "./errors.ts";
import type { CallOptions } from "./transport.ts";

/** Options of a read; the whole file by default. */
export interface ReadOptions extends CallOptions {
  /** Offset of the first byte; 0 by default. */
  offset?: number;
  /** Number of bytes, at least 1; up to the end of the file by default. */
  length?: number;
}

/** The options of the call, with a Range header for a partial read. Throws UsageError if the range is empty. */
export function rangeOf({ offset, length, ...options }: ReadOptions): CallOptions {
  if (offset === undefined && length === undefined) return options;
  if (length !== undefined && length < 1) throw new UsageError(`length is ${length}: it must be at least 1.`);
  const last = length === undefined ? "" : (offset ?? 0) + length - 1;
  return { ...options, headers: { ...options.headers, Range: `bytes=${offset ?? 0}-${last}` } };
}
