/** Owns when what was not taken is tried again, and when a webhook is given up. Pure: who asks says what time it is. */
import { at } from "../../core/clock.ts";

/** After the first try, the second, and so on: 5 s, 1 m, 5 m, 30 m, 2 h, 6 h, 12 h, and from then on 12 h each time. */
const AGAIN_SECONDS = [5, 60, 300, 1800, 7200, 21_600];
const LATER_SECONDS = 43_200;
/** A receiver can ask for more time, and not for ever. */
const MOST_ASKED_SECONDS = 43_200;
const MOST_FAILING_MS = 5 * 86_400_000;
/** Of answers that ask for it: too many requests, not available. */
const ASKING: readonly number[] = [429, 503];

/** When an event is tried again that was tried so often, and no sooner than its receiver asks for. */
export function nextTry(attempts: number, nowMs: number, askedSeconds: number | null): string {
  const usual = AGAIN_SECONDS[attempts - 1] ?? LATER_SECONDS;
  return at(nowMs + Math.max(usual, askedSeconds ?? 0) * 1000);
}

/** How long a receiver asks to be left alone by Retry-After, in seconds or as a date; null: it does not. */
export function askedSeconds(status: number, retryAfter: string | undefined, nowMs: number): number | null {
  if (!ASKING.includes(status) || retryAfter === undefined) return null;
  const seconds = /^\d{1,10}$/.test(retryAfter)
    ? Number(retryAfter)
    : Math.ceil((Date.parse(retryAfter) - nowMs) / 1000);
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), MOST_ASKED_SECONDS);
}

/** Whether a receiver that has taken nothing since then is given up. */
export function isGivenUp(failingSince: string, nowMs: number): boolean {
  return nowMs - Date.parse(failingSince) >= MOST_FAILING_MS;
}
