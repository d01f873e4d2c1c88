/**
 * Owns how much of a guest's talk the host takes in a second. Every frame has a price, about what it costs us to take; a guest
 * that has spent its second's worth is not read from until it has earned it back, so that it slows down itself and nobody else.
 */
import { FrameType } from "../../../shared/agent-protocol/frame.ts";
import { monotonicMs, startTimer } from "../../core/clock.ts";

/** A command that writes single bytes as fast as it can needs a third of it; full frames of output come to 800 MiB a second. */
export const PRICE_PER_SECOND = 65_536;
/** Data is copied once; the text of other frames is parsed, of which a guest can make as many small things as it has letters. */
const BYTES_PER_POINT = { data: 16_384, other: 32 } as const;

/** A command's output comes in pieces, each of which is looked at by itself, and told of in a line of its own. */
const PIECES_PER_POINT = 4;

export function priceOfPieces(count: number): number {
  return count / PIECES_PER_POINT;
}

/** What a guest asks is decided, perhaps recorded, and answered: 512 a second of some hundred bytes are more than its rates let through. */
const POINTS_FOR_REQUEST = 112;

export function priceOf(type: number, bytes: number): number {
  return (
    (type === FrameType.open ? POINTS_FOR_REQUEST : 1) +
    Math.floor(bytes / (type === FrameType.data ? BYTES_PER_POINT.data : BYTES_PER_POINT.other))
  );
}

/** So many at once, and so many a second. */
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

  /** Takes so many, also more than there are; what is missing is earned back first. */
  spend(count: number): void {
    this.#earn();
    this.#left -= count;
  }

  /** Takes one, if there is one. */
  take(): boolean {
    if (!this.has()) return false;
    this.#left--;
    return true;
  }

  /** Whether there is one to take. */
  has(): boolean {
    this.#earn();
    return this.#left >= 1;
  }

  /** Milliseconds until what was spent too much is earned back. */
  debtMs(): number {
    this.#earn();
    return this.#left >= 0 ? 0 : Math.ceil((-this.#left * 1000) / this.#perSecond);
  }

  /** Spends; a promise where what is missing has to be earned back first, so that others have their turn. */
  pay(count: number): Promise<void> | null {
    this.spend(count);
    const ms = this.debtMs();
    return ms === 0 ? null : new Promise((resolve) => startTimer(resolve, ms));
  }

  #earn(): void {
    const nowMs = monotonicMs();
    const earned = ((nowMs - this.#countedAt) * this.#perSecond) / 1000;
    this.#left = Math.min(this.#atOnce, this.#left + earned);
    this.#countedAt = nowMs;
  }
}
