/**
 * Estimate of a drive's usage as far as calls know it: arithmetic, without clock or disk.
 *
 *     measured   result of the last measure, plus additions and frees of calls since
 *     doubtful   the part that may be counted twice: a measure may or may not include changes made during it
 *     claimed    reservations of writes in progress
 *
 * The estimate is never less than the calls' additions plus the last measure; a measure without concurrent calls makes it exact. Guests
 * write without calls: the next measure adds their data.
 */
import type { Amount, Measured } from "./measure.ts";

const NOTHING: Amount = { used_bytes: 0, file_count: 0, entry_count: 0 };

/** Effect of a call on the drive. */
export interface Change {
  added?: Partial<Amount>;
  freed?: Partial<Amount>;
}

/** Reservation of a write in progress. */
export interface Claimed {
  bytes: number;
  entries: number;
}

export interface Limits {
  bytes: number;
  entries: number;
}

/** Number of measures that had finished at a moment. */
export type Moment = number & { readonly brand: unique symbol };

export class Estimate {
  #measured: Measured | null = null;
  #doubtful = NOTHING;
  /** For the measure in progress: changes that it may have missed, or may have counted nevertheless. */
  #during: { added: Amount; freed: Amount } | null = null;
  #finished = 0;
  readonly #claims = new Set<Claimed>();

  /** Null before the first measure. */
  get measured(): Measured | null {
    return this.#measured;
  }

  /** Bytes including all reservations. */
  get bytes(): number {
    return (this.#measured?.used_bytes ?? 0) + this.#claimed("bytes");
  }

  /** Names including all reservations. */
  get entries(): number {
    return (this.#measured?.entry_count ?? 0) + this.#claimed("entries");
  }

  /** To be saved at the start of a change to the drive, and passed with the change. */
  get moment(): Moment {
    return this.#finished as Moment;
  }

  claim(claim: Claimed): void {
    this.#claims.add(claim);
  }

  release(claim: Claimed): void {
    this.#claims.delete(claim);
  }

  /** A measure starts; the result of a previous one in progress must not be reported any more. */
  begin(): void {
    this.#during = { added: NOTHING, freed: NOTHING };
  }

  /** The measure that started last has ended without a result. */
  giveUp(): void {
    this.#during = null;
  }

  /** Result of the measure that started last. */
  finish(found: Measured): void {
    const { added, freed } = this.#during ?? { added: NOTHING, freed: NOTHING };
    const before = this.#measured;
    // An incomplete measure counts as at least the previous values.
    const least = found.is_complete || !before ? found : { ...found, ...most(found, before) };
    this.#measured = { ...least, ...sum(least, added) };
    this.#doubtful = sum(added, freed);
    this.#during = null;
    this.#finished++;
  }

  /** Usage counted by the kernel, which is exact at any time. */
  set(usage: Measured): void {
    this.#measured = usage;
    this.#doubtful = NOTHING;
  }

  /** Applies the change of a call that started at `since`. Returns false if it contradicts the known usage: the drive had more. */
  change({ added: more, freed: less }: Change, since: Moment): boolean {
    if (!this.#measured) return true;
    const [added, freed] = [sum(NOTHING, more ?? {}), sum(NOTHING, less ?? {})];
    // A measure that ended since then may already include the change.
    const isSeen = since !== this.#finished;
    const left = difference(sum(this.#measured, added), isSeen ? NOTHING : freed);
    this.#measured = { ...this.#measured, ...most(left, NOTHING) };
    if (isSeen) this.#doubtful = sum(this.#doubtful, sum(added, freed));
    if (this.#during) {
      this.#during = { added: sum(this.#during.added, added), freed: sum(this.#during.freed, freed) };
    }
    return left.used_bytes >= 0 && left.entry_count >= 0;
  }

  /** Whether `more` fits; `perhaps` if another measure may find that it does. */
  admits(more: Claimed, limits: Limits): Record<"bytes" | "entries", "yes" | "perhaps" | "no"> {
    const verdict = (after: number, doubtful: number, limit: number) =>
      after <= limit ? "yes" : after - doubtful <= limit ? "perhaps" : "no";
    return {
      bytes: verdict(this.bytes + more.bytes, this.#doubtful.used_bytes, limits.bytes),
      entries: verdict(this.entries + more.entries, this.#doubtful.entry_count, limits.entries),
    };
  }

  #claimed(field: keyof Claimed): number {
    return this.#claims.values().reduce((total, claim) => total + claim[field], 0);
  }
}

function combine(one: Amount, other: Partial<Amount>, by: (a: number, b: number) => number): Amount {
  return {
    used_bytes: by(one.used_bytes, other.used_bytes ?? 0),
    file_count: by(one.file_count, other.file_count ?? 0),
    entry_count: by(one.entry_count, other.entry_count ?? 0),
  };
}

const sum = (one: Amount, other: Partial<Amount>) => combine(one, other, (a, b) => a + b);
const difference = (one: Amount, other: Partial<Amount>) => combine(one, other, (a, b) => a - b);
const most = (one: Amount, other: Amount) => combine(one, other, Math.max);
