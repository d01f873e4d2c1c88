/** Owns the records of refused connections: those that are alike become one record with their count, the first one soon. */
import type { DENIAL_REASONS } from "../../../shared/api/egress.ts";

/** Where a sandbox was not let, as the audit has it. */
export interface Denial {
  /** The name that was asked for; null for an address. */
  host: string | null;
  /** Null when it was refused before it was resolved. */
  ip: string | null;
  /** Null when only its address was asked for. */
  port: number | null;
  reason: DenialReason;
  /** The name that the connection itself was for, where that is another. */
  presented?: string;
}

export type DenialReason = (typeof DENIAL_REASONS)[number];

const FIRST_MS = 250;
const NEXT_MS = 10_000;
/** Of one sandbox in one time; what is beyond is counted without its names. */
const MOST_KINDS = 32;

export class Denials {
  readonly #record: (details: Denial & { count: number }) => void;
  readonly #counts = new Map<string, Denial & { count: number }>();
  #timer: Timer | undefined;
  #flushedAt = Number.NEGATIVE_INFINITY;

  constructor(record: (details: Denial & { count: number }) => void) {
    this.#record = record;
  }

  add(denial: Denial): void {
    const key = JSON.stringify(denial);
    const isOneMore = !this.#counts.has(key) && this.#counts.size >= MOST_KINDS;
    const kind: Denial = isOneMore ? { host: null, ip: null, port: null, reason: "other" } : denial;
    const kindKey = isOneMore ? "" : key;
    const known = this.#counts.get(kindKey);
    if (known) known.count++;
    else this.#counts.set(kindKey, { ...kind, count: 1 });
    this.#timer ??= setTimeout(() => this.flush(), this.#waitMs());
  }

  /** Writes what is counted. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushedAt = performance.now();
    for (const counted of this.#counts.values()) this.#record(counted);
    this.#counts.clear();
  }

  #waitMs(): number {
    return performance.now() - this.#flushedAt > NEXT_MS ? FIRST_MS : NEXT_MS;
  }
}
