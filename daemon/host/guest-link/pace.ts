/**
 * Rate limit on a guest's frames. Every frame has a price, about its cost to the host; a guest that has spent its budget of a second is not
 * read from until it has earned it back, so that it slows down only itself.
 */
import { FrameType } from "../../../shared/agent-protocol/frame.ts";
import { monotonicMs, sleep } from "../../core/clock.ts";

/** A command that writes single bytes as fast as it can needs a third of it; full frames of output total 800 MiB a second. */
export const PRICE_PER_SECOND = 65_536;
/** Data is copied once; the text of other frames is parsed, and a guest can put as many small values into it as it has characters. */
const BYTES_PER_POINT = { data: 16_384, other: 32 } as const;

/** A command's output comes in pieces, each of which is checked separately, and reported in its own line. */
const PIECES_PER_POINT = 4;

export function priceOfPieces(count: number): number {
  return count / PIECES_PER_POINT;
}

/**
 * A guest's request is authorized, perhaps recorded, and answered: 512 a second of some hundred bytes are more than its rate limits permit.
 */
const POINTS_FOR_REQUEST = 112;

export function priceOf(type: number, bytes: number): number {
  return (
    (type === FrameType.open ? POINTS_FOR_REQUEST : 1) +
    Math.floor(bytes / (type === FrameType.data ? BYTES_PER_POINT.data : BYTES_PER_POINT.other))
  );
}

/** Token bucket: `atOnce` tokens in a burst, `perSecond` a second. */
export class Allowance {
  readonly #perSecond: number;
  readonly #atOnce: number;
  #left: number;
  #countedAt = monotonicMs();

  constructor(perSecond: number, atOnce: number) {
    this.#perSecond = perSecond;
    this.#atOnce = atOnce;
    this.#left = atOnce;
  }

  /** Takes `count` tokens, even more than there are; the debt is earned back first. */
  spend(count: number): void {
    this.#earn();
    this.#left -= count;
  }

  /** Takes a token, if one is available. */
  take(): boolean {
    if (!this.has()) return false;
    this.#left--;
    return true;
  }

  /** Whether a token is available. */
  has(): boolean {
    this.#earn();
    return this.#left >= 1;
  }

  /** Milliseconds until the debt is earned back. */
  debtMs(): number {
    this.#earn();
    return this.#left >= 0 ? 0 : Math.ceil((-this.#left * 1000) / this.#perSecond);
  }

  /** Spends; returns a promise if a debt has to be earned back first, so that others have their turn. */
  pay(count: number): Promise<void> | null {
    this.spend(count);
    const ms = this.debtMs();
    return ms === 0 ? null : sleep(ms);
  }

  #earn(): void {
    const nowMs = monotonicMs();
    const earned = ((nowMs - this.#countedAt) * this.#perSecond) / 1000;
    this.#left = Math.min(this.#atOnce, this.#left + earned);
    this.#countedAt = nowMs;
  }
}
