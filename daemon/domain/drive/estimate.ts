/**
 * Owns how much of its quota a drive takes, as far as calls know: arithmetic, without clock or disk.
 *
 *   measured   what the last measure found, and what calls have added and freed since
 *   doubtful   how much of that may be counted twice: a measure may or may not have seen what was changed during it
 *   claimed    what writes under way have set aside
 *
 * Whatever calls do, it is never less than what they have made and a measure has found; a measure without calls during it
 * makes it exact. Guests write past the calls: what they add is known from the next measure on.
 */
import type { Amount, Measured } from "./measure.ts";

const NOTHING: Amount = { used_bytes: 0, file_count: 0, entry_count: 0 };

/** What a call has done to the drive. */
export interface Change {
  added?: Partial<Amount>;
  freed?: Partial<Amount>;
}

/** What a write under way has set aside. */
export interface Claimed {
  bytes: number;
  entries: number;
}

export interface Limits {
  bytes: number;
  entries: number;
}

/** Which measures had been finished at a moment. */
export type Moment = number & { readonly brand: unique symbol };

export class Estimate {
  #measured: Measured | null = null;
  #doubtful = NOTHING;
  /** Of the measure that is under way: what it may have missed, and what it may have counted all the same. */
  #during: { added: Amount; freed: Amount } | null = null;
  #finished = 0;
  readonly #claims = new Set<Claimed>();

  /** Null before the first measure. */
  get measured(): Measured | null {
    return this.#measured;
  }

  /** Bytes with all that is set aside. */
  get bytes(): number {
    return (this.#measured?.used_bytes ?? 0) + this.#claimed("bytes");
  }

  /** Names with all that are set aside. */
  get entries(): number {
    return (this.#measured?.entry_count ?? 0) + this.#claimed("entries");
  }

  /** To be remembered at the beginning of what changes the drive, and told with the change. */
  get moment(): Moment {
    return this.#finished as Moment;
  }

  claim(claim: Claimed): void {
    this.#claims.add(claim);
  }

  release(claim: Claimed): void {
    this.#claims.delete(claim);
  }

  /** A measure begins; one that was under way is not to be told of any more. */
  begin(): void {
    this.#during = { added: NOTHING, freed: NOTHING };
  }

  /** The measure that began last has ended without a result. */
  giveUp(): void {
    this.#during = null;
  }

  /** The measure that began last has found so much. */
  finish(found: Measured): void {
    const { added, freed } = this.#during ?? { added: NOTHING, freed: NOTHING };
    const before = this.#measured;
    // What was not counted to its end is at least what was known of it.
    const least = found.is_complete || !before ? found : { ...found, ...most(found, before) };
    this.#measured = { ...least, ...sum(least, added) };
    this.#doubtful = sum(added, freed);
    this.#during = null;
    this.#finished++;
  }

  /** What the kernel counts, which is exact at any time. */
  set(counted: Measured): void {
    this.#measured = counted;
    this.#doubtful = NOTHING;
  }

  /** A call that began at that moment has changed the drive. False when that cannot be: there was more than was known. */
  change({ added: more, freed: less }: Change, since: Moment): boolean {
    if (!this.#measured) return true;
    const [added, freed] = [sum(NOTHING, more ?? {}), sum(NOTHING, less ?? {})];
    // A measure that ended meanwhile may have seen the change already.
    const isSeen = since !== this.#finished;
    const left = difference(sum(this.#measured, added), isSeen ? NOTHING : freed);
    this.#measured = { ...this.#measured, ...most(left, NOTHING) };
    if (isSeen) this.#doubtful = sum(this.#doubtful, sum(added, freed));
    if (this.#during) {
      this.#during = { added: sum(this.#during.added, added), freed: sum(this.#during.freed, freed) };
    }
    return left.used_bytes >= 0 && left.entry_count >= 0;
  }

  /** Whether so much more fits; `perhaps` where another measure may find that it does. */
  admits(more: Claimed, limits: Limits): Record<"bytes" | "entries", "yes" | "perhaps" | "no"> {
    const verdict = (after: number, doubtful: number, limit: number) =>
      after <= limit ? "yes" : after - doubtful <= limit ? "perhaps" : "no";
    return {
      bytes: verdict(this.bytes + more.bytes, this.#doubtful.used_bytes, limits.bytes),
      entries: verdict(this.entries + more.entries, this.#doubtful.entry_count, limits.entries),
    };
  }

  #claimed(what: keyof Claimed): number {
    return this.#claims.values().reduce((total, claim) => total + claim[what], 0);
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
