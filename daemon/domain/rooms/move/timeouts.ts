/** Time limits for sending or reading a room's file: the number of concurrent files is small. */
import { monotonicMs } from "../../../core/clock.ts";

export interface MoveTimeouts {
  /** Without a byte. */
  silenceMs: number;
  /** In all: allowed in addition to the time at this rate. */
  slackMs: number;
  bytesPerSecond: number;
}

export const CLIENTS: MoveTimeouts = { silenceMs: 120_000, slackMs: 3_600_000, bytesPerSecond: 1024 ** 2 };
/** A peer host is as slow as the network between, and is detected when it is gone. */
export const MEMBERS: MoveTimeouts = { silenceMs: 60_000, slackMs: Number.POSITIVE_INFINITY, bytesPerSecond: 1 };

/** Time that the next byte may take after `bytes` of a transfer that started at `sinceMs` (monotonic clock). */
export function leftMs({ silenceMs, slackMs, bytesPerSecond }: MoveTimeouts, sinceMs: number, bytes: number): number {
  const left = sinceMs + slackMs + (bytes * 1000) / bytesPerSecond - monotonicMs();
  return Math.max(0, Math.min(silenceMs, left));
}
