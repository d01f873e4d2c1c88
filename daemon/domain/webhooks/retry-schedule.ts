/** Retry schedule of failed events, and the time after which a webhook is disabled. Pure: the caller, delivery-lane.ts, passes the time. */
import { at } from "../../core/clock.ts";

/** Delays after the first attempt, the second, and so on: 5 s, 1 m, 5 m, 30 m, 2 h, 6 h, then 12 h each. */
const AGAIN_SECONDS = [5, 60, 300, 1800, 7200, 21_600];
const LATER_SECONDS = 43_200;
/** Maximum delay that a receiver can request. */
const MAX_ASKED_SECONDS = 43_200;
const MAX_FAILING_MS = 5 * 86_400_000;
/** Statuses with which a receiver can request a delay: too many requests, not available. */
const ASKING: readonly number[] = [429, 503];

/** Time of the next attempt after `attempts`, not before the receiver's requested delay. */
export function nextTry(attempts: number, nowMs: number, askedSeconds: number | null): string {
  const usual = AGAIN_SECONDS[attempts - 1] ?? LATER_SECONDS;
  return at(nowMs + Math.max(usual, askedSeconds ?? 0) * 1000);
}

/** Delay that a receiver requests with Retry-After, in seconds or as a date; null: none. */
export function askedSeconds(status: number, retryAfter: string | undefined, nowMs: number): number | null {
  if (!ASKING.includes(status) || retryAfter === undefined) return null;
  const seconds = /^\d{1,10}$/.test(retryAfter)
    ? Number(retryAfter)
    : Math.ceil((Date.parse(retryAfter) - nowMs) / 1000);
  return Number.isNaN(seconds) ? null : Math.min(Math.max(seconds, 0), MAX_ASKED_SECONDS);
}

/** Whether a receiver that has accepted nothing since then is to be disabled. */
export function isGivenUp(failingSince: string, nowMs: number): boolean {
  return nowMs - Date.parse(failingSince) >= MAX_FAILING_MS;
}
