/**
 * Hash chain: the columns that a record's hash covers, and verification of a chain. Records are appended in ../store.ts.
 * hash = SHA-256 over the JSON of all columns in HASHED order, prev_hash among them; the first prev_hash is GENESIS.
 */
import { hash } from "node:crypto";
import type { Values } from "../../../db/client.ts";
import type { AuditRow } from "../table.ts";
import { MAX_NAMED, type NamedHead, namedHead } from "./named-heads.ts";

export const GENESIS = "0".repeat(64);

/** Hashed columns. The order is part of the chain: new columns are appended, the others stay in place. */
export const HASHED = [
  "org_key",
  "seq",
  "audit_id",
  "event",
  "outcome",
  "at",
  "org_id",
  "room_id",
  "room_uid",
  "agent_id",
  "sandbox_id",
  "actor_type",
  "actor_id",
  "actor_name",
  "source",
  "request_id",
  "ip",
  "status",
  "error_code",
  "duration_ms",
  "details",
  "prev_hash",
] as const satisfies (keyof AuditRow)[];

export function hashOf(row: Omit<AuditRow, "hash">): string {
  return hashOfValues(HASHED.map((column) => row[column]));
}

/** Hash of a record's columns in HASHED order. */
export function hashOfValues(values: Values): string {
  return hash("sha256", JSON.stringify(values));
}

/** A position in a chain: a record and its hash. */
export interface Head {
  seq: number;
  hash: string;
}

export interface Verdict {
  ok: boolean;
  from_seq: number;
  to_seq: number;
  /** The first record that does not match or is missing. */
  broken_at: number | null;
}

/** Facts about a chain from outside its records. */
export interface ChainFacts {
  /** The last record that the chain is known to have. */
  head: Head | null;
  /** The last purged record, if any. */
  start?: Head | null;
  /** Whether the records are a stretch from within a chain: its start needs no explanation. */
  isStretch?: boolean;
  /** Hashes by seq that were stored elsewhere when the records were written. */
  witnessed?: ReadonlyMap<number, string>;
  /** An earlier check of the same chain, from which this one continues. */
  walked?: Walked | null;
}

/** Progress of a check: the last record checked, the last purge recorded up to it, and the newest heads that its records name. */
export interface Walked {
  last: Head;
  purged: Head | null;
  named: readonly NamedHead[];
}

/** Event of the record that a purge appends; its details are a Head. */
export const PURGED = "audit.purged";

/** Checks records in order of seq, and that they reach from the chain's start to its head. */
export class ChainCheck {
  readonly #known: ChainFacts;
  readonly #begin: Head;
  #last: Head;
  /** The last purge that a record reports. */
  #purged: Head | null = null;
  readonly #named: NamedHead[];
  #broken: Verdict | null = null;

  constructor(known: ChainFacts) {
    this.#known = known;
    this.#begin = known.start ?? { seq: 0, hash: GENESIS };
    this.#last = known.walked?.last ?? this.#begin;
    this.#purged = known.walked?.purged ?? null;
    this.#named = [...(known.walked?.named ?? [])];
  }

  get walked(): Walked {
    return { last: this.#last, purged: this.#purged, named: this.#named.slice(-MAX_NAMED) };
  }

  /** Checks a record. Returns whether the chain is intact up to it. */
  take(row: AuditRow): boolean {
    const { head, witnessed } = this.#known;
    if (row.seq !== this.#last.seq + 1) return this.#breaks(this.#last.seq + 1, row.seq);
    const isOther = row.seq === head?.seq && row.hash !== head.hash;
    const isForged = (witnessed?.get(row.seq) ?? row.hash) !== row.hash;
    const isLinked = row.prev_hash === this.#last.hash && row.hash === hashOf(row);
    if (!isLinked || isOther || isForged) return this.#breaks(row.seq, row.seq);
    this.#last = { seq: row.seq, hash: row.hash };
    if (row.event === PURGED) this.#purged = JSON.parse(row.details) as Head;
    const named = namedHead(row);
    if (named) this.#named.push(named);
    return true;
  }

  /** There are no more records. */
  end(): Verdict {
    const { seq: begin, hash } = this.#begin;
    const { seq: last } = this.#last;
    const isCut = this.#furthest() > last || (this.#known.head === null && last > 0);
    if (isCut) this.#breaks(last + 1, last);
    // A chain that does not start with its first record contains a record of the purge.
    const isPurged =
      begin === 0 || this.#known.isStretch || (this.#purged?.seq === begin && this.#purged.hash === hash);
    if (!isPurged) this.#breaks((this.#purged?.seq ?? 0) + 1, last);
    const isForged = (this.#known.witnessed?.get(begin) ?? hash) !== hash;
    if (isForged) this.#breaks(begin, last);
    return this.#broken ?? { ok: true, from_seq: last === begin ? 0 : begin + 1, to_seq: last, broken_at: null };
  }

  /** A missing head was removed, perhaps with records after the last remaining one. */
  #furthest(): number {
    const { head, witnessed } = this.#known;
    let furthest = head?.seq ?? 0;
    for (const seq of witnessed?.keys() ?? []) furthest = Math.max(furthest, seq);
    return furthest;
  }

  /** Only the first break is reported. */
  #breaks(broken_at: number, to_seq: number): false {
    this.#broken ??= { ok: false, from_seq: this.#begin.seq + 1, to_seq, broken_at };
    return false;
  }
}
