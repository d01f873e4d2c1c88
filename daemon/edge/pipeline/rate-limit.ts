/**
 * Token-bucket rate limit per API key or sandbox: every call takes one token, whatever its duration, and the bucket is refilled at a
 * constant rate. A key and its rotated successors have one bucket. There is no timer: a bucket's balance is computed when it is used, and a
 * bucket that would be full again is equivalent to an absent one.
 */

import { type Caller, firstKeyOf } from "../../core/call/operation.ts";
import { monotonicMs } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Above this, full buckets are evicted and, if none exist, the oldest. */
const MAX_BUCKETS = 10_000;

export interface RateLimits {
  /** 0: there is no limit. */
  perSecond: number;
  /** The tokens of a full bucket. */
  burst: number;
}

/** The key's rate after a call. */
export interface Rate {
  limit: number;
  remaining: number;
  /** Seconds until the bucket is full again. */
  reset_seconds: number;
  /** Whether there was a token for the call. */
  isWithin: boolean;
  /** Time until there are enough tokens, if there were too few for a call that counts as several. */
  retry_seconds?: number;
}

interface Bucket {
  tokens: number;
  countedAtMs: number;
}

export class RateLimit {
  readonly #of: string;
  readonly #perMs: number;
  readonly #burst: number;
  readonly #buckets = new Map<string, Bucket>();

  /** `of` names the limited party in the refusal. */
  constructor({ perSecond, burst }: RateLimits, of = "key") {
    this.#of = of;
    this.#perMs = perSecond / 1000;
    this.#burst = Math.max(1, burst);
  }

  /** How many buckets are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token of the caller's; null if there is no limit. */
  take(caller: Pick<Caller, "key_id" | "first_key_id">): Rate | null {
    if (this.#perMs === 0) return null;
    const bucket = this.#bucketOf(firstKeyOf(caller));
    const isWithin = bucket.tokens >= 1;
    if (isWithin) bucket.tokens--;
    return this.#rateOf(bucket, isWithin);
  }

  /**
   * Takes `count` more tokens for a call that has its first. The call needs no more than a full bucket; the excess is deducted, and earned
   * back before the next call. If there are too few it takes none, and returns the first.
   */
  takeMore(caller: Pick<Caller, "key_id" | "first_key_id">, first: Rate | null, count: number): Rate | null {
    if (first?.isWithin !== true) return first;
    const bucket = this.#bucketOf(firstKeyOf(caller));
    const deficit = Math.min(count, this.#burst - 1) - bucket.tokens;
    bucket.tokens += deficit > 0 ? 1 : -count;
    const rate = this.#rateOf(bucket, deficit <= 0);
    return deficit > 0 ? { ...rate, retry_seconds: Math.ceil(deficit / this.#perMs / 1000) } : rate;
  }

  #rateOf({ tokens }: Bucket, isWithin: boolean): Rate {
    return {
      limit: this.#burst,
      remaining: Math.max(0, Math.floor(tokens)),
      reset_seconds: Math.ceil((this.#burst - tokens) / this.#perMs / 1000),
      isWithin,
    };
  }

  /** Throws rate_limited if the call exceeds the rate. */
  require(rate: Rate | null): void {
    if (rate === null || rate.isWithin) return;
    throw new ServiceError("rate_limited", {
      detail: `This ${this.#of} made more than ${this.#perMs * 1000} requests a second.`,
      details: { limit: rate.limit, per_second: this.#perMs * 1000 },
      hint: "Wait for Retry-After seconds. RateLimit-Remaining is the number of calls left.",
      retryAfterSeconds: Math.max(1, rate.retry_seconds ?? Math.ceil(1 / this.#perMs / 1000)),
    });
  }

  #bucketOf(name: string): Bucket {
    const nowMs = monotonicMs();
    const known = this.#buckets.get(name);
    if (known) {
      known.tokens = this.#tokensAt(known, nowMs);
      known.countedAtMs = nowMs;
      return known;
    }
    if (this.#buckets.size >= MAX_BUCKETS) this.#forget(nowMs);
    const bucket = { tokens: this.#burst, countedAtMs: nowMs };
    this.#buckets.set(name, bucket);
    return bucket;
  }

  #tokensAt({ tokens, countedAtMs }: Bucket, nowMs: number): number {
    return Math.min(this.#burst, tokens + (nowMs - countedAtMs) * this.#perMs);
  }

  #forget(nowMs: number): void {
    for (const [name, bucket] of this.#buckets) {
      if (this.#tokensAt(bucket, nowMs) >= this.#burst) this.#buckets.delete(name);
    }
    for (const name of this.#buckets.keys()) {
      if (this.#buckets.size < MAX_BUCKETS) break;
      this.#buckets.delete(name);
    }
  }
}
