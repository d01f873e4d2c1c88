/**
 * Challenges, to be answered once, within five minutes, by the session or browser that received them. A challenge is authenticated by a key
 * in this process's memory, so requesting many takes no memory; only correctly answered ones are stored, until they expire.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { monotonicMs } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";

const LIFE_MS = 300_000;
const TIME_BYTES = 6;
const BODY_BYTES = TIME_BYTES + 18;
const MAC_BYTES = 32;
const MAX_ANSWERED = 50_000;

/** Purpose and recipient of a challenge: a session, or a browser without a session. */
export interface Given {
  purpose: string;
  to: string;
}

export class Challenges {
  readonly #key = randomBytes(32);
  /** Time at which each challenge was answered, the oldest first. */
  readonly #answered = new Map<string, number>();

  make(given: Given): string {
    const body = Buffer.concat([Buffer.alloc(TIME_BYTES), randomBytes(BODY_BYTES - TIME_BYTES)]);
    body.writeUIntBE(Math.floor(monotonicMs()), 0, TIME_BYTES);
    return Buffer.concat([body, this.#mac(body, given)]).toString("base64url");
  }

  /** Whether it was made for this, is recent, and was not answered yet. */
  isOpen(challenge: string, given: Given): boolean {
    const bytes = Buffer.from(challenge, "base64url");
    if (bytes.length !== BODY_BYTES + MAC_BYTES || bytes.toString("base64url") !== challenge) return false;
    const body = bytes.subarray(0, BODY_BYTES);
    if (!timingSafeEqual(bytes.subarray(BODY_BYTES), this.#mac(body, given))) return false;
    const age = monotonicMs() - body.readUIntBE(0, TIME_BYTES);
    return age >= 0 && age < LIFE_MS && !this.#answered.has(challenge);
  }

  /** A secret bound to a challenge, which no other party can compute. */
  derive(challenge: string, purpose: string): string {
    return createHmac("sha256", this.#key)
      .update(JSON.stringify([purpose, challenge]))
      .digest("base64url");
  }

  /** Marks it as answered correctly. False: a concurrent request has answered it too. Throws rate_limited. */
  answer(challenge: string): boolean {
    const nowMs = monotonicMs();
    for (const [oldest, at] of this.#answered) {
      if (nowMs - at < LIFE_MS) break;
      this.#answered.delete(oldest);
    }
    if (this.#answered.has(challenge)) return false;
    if (this.#answered.size >= MAX_ANSWERED) {
      throw new ServiceError("rate_limited", {
        detail: "Too many sign-ins are in progress.",
        retryAfterSeconds: 60,
      });
    }
    this.#answered.set(challenge, nowMs);
    return true;
  }

  #mac(body: Uint8Array, { purpose, to }: Given): Buffer {
    return createHmac("sha256", this.#key)
      .update(body)
      .update(JSON.stringify([purpose, to]))
      .digest();
  }
}
