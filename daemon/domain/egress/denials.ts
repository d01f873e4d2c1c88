/** Records of refused connections: similar ones become one record with their count; the first of a kind is recorded soon. */
import type { DENIAL_REASONS } from "../../../shared/api/egress.ts";
import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";

/** A refused connection of a sandbox, as the audit records it. */
export interface Denial {
  /** The requested name; null for an address. */
  host: string | null;
  /** Null if the connection was refused before the lookup. */
  ip: string | null;
  /** Null if only its address was requested. */
  port: number | null;
  reason: DenialReason;
  /** The name that the connection itself was for, if it differs. */
  presented?: string;
}

export type DenialReason = (typeof DENIAL_REASONS)[number];

const FIRST_MS = 100;
/** Delay of the next record of a kind that was already recorded. */
const NEXT_MS = 10_000;
/** Per sandbox in that time; kinds above this are counted without their names. */
const MAX_KINDS = 32;
const OTHER: Denial = { host: null, ip: null, port: null, reason: "other" };

interface CountedDenial {
  denial: Denial & { count: number };
  dueAt: number;
}

export class Denials {
  readonly #record: (details: Denial & { count: number }) => void;
  /** Pending counts, by kind. */
  readonly #counts = new Map<string, CountedDenial>();
  /** Time of each kind's last record, for as long as it delays the next one. */
  readonly #recorded = new Map<string, number>();
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(record: (details: Denial & { count: number }) => void) {
    this.#record = record;
  }

  add(denial: Denial): void {
    const now = monotonicMs();
    this.#forget(now);
    const key = JSON.stringify(denial);
    const isKnown = this.#counts.has(key) || this.#recorded.has(key);
    const isOneMore = !isKnown && new Set([...this.#counts.keys(), ...this.#recorded.keys()]).size >= MAX_KINDS;
    const kind = isOneMore ? "" : key;
    const entry = this.#counts.get(kind);
    if (entry) {
      entry.denial.count++;
      return;
    }
    const before = this.#recorded.get(kind);
    const dueAt = before === undefined ? now + FIRST_MS : before + NEXT_MS;
    this.#counts.set(kind, { denial: { ...(isOneMore ? OTHER : denial), count: 1 }, dueAt });
    this.#wake(dueAt);
  }

  /** Writes all that is counted. */
  flush(): void {
    this.#write(Number.POSITIVE_INFINITY);
  }

  #write(upTo: number): void {
    stopTimer(this.#timer);
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
    for (const [kind, { denial, dueAt }] of [...this.#counts]) {
      if (dueAt > upTo) {
        this.#wake(dueAt);
        continue;
      }
      this.#counts.delete(kind);
      this.#recorded.set(kind, monotonicMs());
      this.#record(denial);
    }
  }

  #wake(at: number): void {
    if (at >= this.#timerAt) return;
    stopTimer(this.#timer);
    this.#timerAt = at;
    this.#timer = startTimer(() => this.#write(Math.max(at, monotonicMs())), Math.max(0, at - monotonicMs()));
  }

  #forget(now: number): void {
    for (const [kind, at] of this.#recorded) if (now - at > NEXT_MS) this.#recorded.delete(kind);
  }
}
