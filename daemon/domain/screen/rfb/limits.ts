/**
 * Limits for messages of a screen's server. It runs in the guest, under an untrusted root user: exceeding a limit closes the connection.
 */
import { Allowance } from "../../../host/guest-link/pace.ts";

/** Maximum pixels of a side; with four bytes each, a frame has at most 64 MiB. */
export const MAX_SIDE = 4096;
/** Length of the desktop's name, and of the server's reason for a refusal. */
export const MAX_TEXT_BYTES = 4096;
/** Length of a clipboard text: from a server, it is read and dropped. */
export const MAX_CUT_TEXT_BYTES = 1024 * 1024;
export const MAX_RECTANGLES = 20_000;
export const MAX_SECURITY_TYPES = 32;
/** Bytes not yet handed to the transport to the server: the longest action has half of it. */
export const MAX_UNWRITTEN_BYTES = 16 * 1024;
/**
 * Messages, rectangles and rows per second: if all were empty, they would take 10 to 20 % of it. A moving screen of 1280x800 has a sixth.
 */
const READS_PER_SECOND = 131_072;
/** Burst of reads without waiting. */
const READS_AT_ONCE = 4096;
/** Changes of size: each allocates a zeroed frame. */
const SIZES_PER_SECOND = 2;
const SIZES_AT_ONCE = 2;

/** Budget of event-loop time for a screen, over all connections of actions to it. */
export interface Allowances {
  reads: Allowance;
  sizes: Allowance;
}

export const freshReads = (): Allowance => new Allowance(READS_PER_SECOND, READS_AT_ONCE);

export function freshAllowances(): Allowances {
  return {
    reads: freshReads(),
    sizes: new Allowance(SIZES_PER_SECOND, SIZES_AT_ONCE),
  };
}

/** The server violated the protocol or a limit, or is unsupported. */
export class RfbError extends Error {
  override name = "RfbError";
}

/** Throws RfbError for a size that no screen may have. */
export function requireSize(width: number, height: number): void {
  if (width < 1 || height < 1 || width > MAX_SIDE || height > MAX_SIDE) {
    throw new RfbError(`a screen of ${width}x${height} is not between 1x1 and ${MAX_SIDE}x${MAX_SIDE}`);
  }
}
