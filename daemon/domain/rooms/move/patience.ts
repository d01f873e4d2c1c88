/** Owns how long whoever sends a room's file, or reads one, may take: of the places that such a file needs there are few. */
import { monotonicMs } from "../../../core/clock.ts";

export interface Patience {
  /** Without a byte. */
  silenceMs: number;
  /** In all: so much longer than at this rate. */
  slackMs: number;
  bytesPerSecond: number;
}

export const CLIENTS: Patience = { silenceMs: 120_000, slackMs: 3_600_000, bytesPerSecond: 1024 ** 2 };
/** A member is as slow as what lies between, and is noticed when it is gone. */
export const MEMBERS: Patience = { silenceMs: 60_000, slackMs: Number.POSITIVE_INFINITY, bytesPerSecond: 1 };

/** How long the next byte may take after so many, of those that began `sinceMs` by the monotonic clock. */
export function leftMs({ silenceMs, slackMs, bytesPerSecond }: Patience, sinceMs: number, bytes: number): number {
  const left = sinceMs + slackMs + (bytes * 1000) / bytesPerSecond - monotonicMs();
  return Math.max(0, Math.min(silenceMs, left));
}
