/**
 * Owns the hash chain: what a record's hash covers, and how a chain is checked.
 * hash = SHA-256 over the JSON of all columns in HASHED order, prev_hash among them; the first prev_hash is GENESIS.
 */
import { hash } from "node:crypto";
import type { AuditRow } from "./table.ts";

export const GENESIS = "0".repeat(64);

/** The order is part of the chain: never changed, only added to. */
const HASHED = [
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
  return hash("sha256", JSON.stringify(HASHED.map((column) => row[column])));
}

/** The last record that a chain is known to have. */
export interface Head {
  seq: number;
  hash: string;
}

export interface Verdict {
  ok: boolean;
  from_seq: number;
  to_seq: number;
  /** The first record that does not fit, or is not there. */
  broken_at: number | null;
}

/** Checks rows in order of seq, beginning with the first of the chain, and that they reach to its head. */
export function verifyChain(rows: Iterable<AuditRow>, head: Head | null): Verdict {
  let previous = GENESIS;
  let seq = 0;
  const brokenAt = (broken_at: number, to_seq: number) => ({ ok: false, from_seq: 1, to_seq, broken_at });
  for (const row of rows) {
    if (row.seq !== seq + 1) return brokenAt(seq + 1, row.seq);
    const isOther = row.seq === head?.seq && row.hash !== head.hash;
    if (row.prev_hash !== previous || row.hash !== hashOf(row) || isOther) return brokenAt(row.seq, row.seq);
    previous = row.hash;
    seq = row.seq;
  }
  // A head that is missing was taken away, perhaps with records after the last one that is left.
  if (head ? head.seq > seq : seq > 0) return brokenAt(seq + 1, seq);
  return { ok: true, from_seq: seq === 0 ? 0 : 1, to_seq: seq, broken_at: null };
}
