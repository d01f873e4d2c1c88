/**
 * Owns the hash chain: what a record's hash covers, and how a chain is checked.
 * hash = SHA-256 over the JSON of all columns in HASHED order, prev_hash among them; the first prev_hash is GENESIS.
 */
import { createHash } from "node:crypto";
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
  return createHash("sha256")
    .update(JSON.stringify(HASHED.map((column) => row[column])))
    .digest("hex");
}

export interface Verdict {
  ok: boolean;
  from_seq: number;
  to_seq: number;
  /** The first record that does not fit. */
  broken_at: number | null;
}

/** Checks rows in order of seq, beginning with the first of the chain. */
export function verifyChain(rows: Iterable<AuditRow>): Verdict {
  let previous = GENESIS;
  let seq = 0;
  for (const row of rows) {
    if (row.seq !== seq + 1) return { ok: false, from_seq: 1, to_seq: row.seq, broken_at: seq + 1 };
    if (row.prev_hash !== previous || row.hash !== hashOf(row)) {
      return { ok: false, from_seq: 1, to_seq: row.seq, broken_at: row.seq };
    }
    previous = row.hash;
    seq = row.seq;
  }
  return { ok: true, from_seq: seq === 0 ? 0 : 1, to_seq: seq, broken_at: null };
}
