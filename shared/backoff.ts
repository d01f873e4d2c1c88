/** Exponential backoff: delays between retries that are doubled up to a maximum. */

export interface BackoffMs {
  first: number;
  most: number;
}

/** Delay before retry `attempt`, counted from 0, with a jitter of a quarter: clients that fail together do not retry together. */
export function backoffMs(delays: BackoffMs, attempt: number): number {
  return doubled(delays, attempt) * (0.75 + Math.random() / 2);
}

/** The delay without jitter: `first` for attempt 0, then twice as long each time, up to `most`. */
export function doubled({ first, most }: BackoffMs, attempt: number): number {
  return Math.min(first * 2 ** attempt, most);
}
