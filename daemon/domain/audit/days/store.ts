/** The only SQL that records, shortens and removes closed days; parts.ts reads them. */
import { preparedBy, type Queries, rawQuery, rawStatement } from "../../../db/client.ts";
import type { ChainKey } from "../chain/chain-key.ts";
import type { auditFiles, auditStretches } from "../table.ts";

export type Stretch = typeof auditStretches.$inferSelect;
type File = typeof auditFiles.$inferSelect;

const statementsOf = preparedBy((queries: Queries) => ({
  number: rawQuery<{ number: number }>(queries, "SELECT coalesce(max(number), 0) + 1 AS number FROM audit_files"),
  addStretch: rawStatement(
    queries,
    `INSERT INTO audit_stretches (org_key, last_seq, last_hash, first_seq, first_at, last_at, file) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ),
  addFile: rawStatement(
    queries,
    "INSERT INTO audit_files (number, name, sha256, size_bytes, last_at) VALUES (?, ?, ?, ?, ?)",
  ),
  unrecorded: rawQuery(
    queries,
    `DELETE FROM audit_stretches WHERE (org_key, last_seq) IN (
       SELECT org_key, last_seq FROM audit_stretches WHERE file >= (SELECT coalesce(max(number), 0) + 1 FROM audit_files) LIMIT ?)
     RETURNING 1`,
  ),
  shorten: rawQuery(
    queries,
    `DELETE FROM audit WHERE org_key = ?1 AND seq IN (SELECT seq FROM audit WHERE org_key = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3)
     RETURNING 1`,
  ),
  files: rawQuery<File>(queries, "SELECT * FROM audit_files WHERE number > ? ORDER BY number LIMIT 1"),
  recorded: rawQuery(queries, "SELECT 1 FROM audit_files WHERE name = ?"),
  removed: rawQuery(queries, "SELECT 1 FROM audit_files WHERE name = ? AND removed_at < ?"),
  upTo: rawQuery(queries, "SELECT 1 FROM audit WHERE org_key = ? AND seq <= ? LIMIT 1"),
  stretches: rawQuery<Stretch>(queries, "SELECT * FROM audit_stretches WHERE file = ? LIMIT ?"),
  begin: rawStatement(
    queries,
    `INSERT INTO audit_starts (org_key, seq, hash) VALUES (?, ?, ?)
     ON CONFLICT (org_key) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`,
  ),
  dropStretch: rawStatement(queries, "DELETE FROM audit_stretches WHERE org_key = ? AND last_seq = ?"),
  remove: rawStatement(queries, "UPDATE audit_files SET removed_at = ? WHERE number = ?"),
}));

/** Number of the next file. */
export const nextNumber = (queries: Queries): number => statementsOf(queries).number([])[0]?.number ?? 1;

/** Within a transaction. Readers use the stretches only after `recordFile`. */
export function recordStretches(queries: Queries, stretches: readonly Stretch[]): void {
  const { addStretch } = statementsOf(queries);
  for (const { org_key, last_seq, last_hash, first_seq, first_at, last_at, file } of stretches)
    addStretch([org_key, last_seq, last_hash, first_seq, first_at, last_at, file]);
}

/** Makes readers read the records of all its stretches from the file. Within a transaction. */
export function recordFile(
  queries: Queries,
  { number, name, sha256, size_bytes, last_at }: Omit<File, "removed_at">,
): void {
  statementsOf(queries).addFile([number, name, sha256, size_bytes, last_at]);
}

/** Drops stretches of a file that was never recorded; returns their number. Within a transaction. */
export const dropUnrecorded = (queries: Queries, limit: number): number =>
  statementsOf(queries).unrecorded([limit]).length;

/**
 * Deletes the first records of a chain from the table after closed days have copies of them; returns their number. Within a transaction.
 */
export const shorten = (queries: Queries, key: ChainKey, upTo: number, limit: number): number =>
  statementsOf(queries).shorten([key, upTo, limit]).length;

/** Files in the order in which they were recorded, including removed ones. */
export function* filesOf(queries: Queries): Generator<File, void> {
  for (let after = 0; ; ) {
    const [file] = statementsOf(queries).files([after]);
    if (!file) return;
    yield file;
    after = file.number;
  }
}

/** All of them. */
export const closedFiles = (queries: Queries): File[] => [...filesOf(queries)];

/** Whether a file of this name has a row. */
export const isRecorded = (queries: Queries, name: string): boolean =>
  statementsOf(queries).recorded([name]).length > 0;

/** Whether it was recorded before a moment that the file of this name is removed. */
export const wasRemovedBefore = (queries: Queries, name: string, moment: string): boolean =>
  statementsOf(queries).removed([name, moment]).length > 0;

/** Whether the table has records of a chain up to this seq. */
export const hasUpTo = (queries: Queries, key: ChainKey, seq: number): boolean =>
  statementsOf(queries).upTo([key, seq]).length > 0;

export const stretchesOf = (queries: Queries, file: number, limit: number): Stretch[] =>
  statementsOf(queries).stretches([file, limit]);

/** The chain now starts after this stretch. Within a transaction. */
export function purgeStretch(queries: Queries, { org_key, last_seq, last_hash }: Stretch): void {
  const { begin, dropStretch } = statementsOf(queries);
  begin([org_key, last_seq, last_hash]);
  dropStretch([org_key, last_seq]);
}

/** Records that a file without stretches is removed. Within a transaction. */
export const recordRemoved = (queries: Queries, number: number, at: string): void =>
  statementsOf(queries).remove([at, number]);
