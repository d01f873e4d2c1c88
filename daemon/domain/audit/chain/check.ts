/** Checks of hash chains, in steps of about a millisecond. Has no state: reader threads use it too. */
import type { Steps } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import { isLost, reopenClosedFiles } from "../../../db/closed-files.ts";
import { closedUpTo } from "../days/parts.ts";
import { type Scan, scanAudit } from "../reading/scan.ts";
import { chainEnd, chainRecords, chainStart } from "../rows.ts";
import type { AuditRow } from "../table.ts";
import { type ChainKey, chainKey } from "./chain-key.ts";
import { ChainCheck, type ChainFacts, type Verdict, type Walked } from "./hash-chain.ts";
import type { NamedHead } from "./named-heads.ts";

/** Records of a step. */
const AT_ONCE = 100;

export interface Checked {
  verdict: Verdict;
  /** Progress at the end of the closed days; null if the chain is broken before it. */
  closed: Walked | null;
  /** The newest heads of other hosts' chains that its records name. */
  named: readonly NamedHead[];
}

/** Checks a whole chain; `walked` is the result of an earlier check for its closed days. */
export function* checkChain(
  queries: Queries,
  orgKey: ChainKey,
  { witnessed, walked = null }: Pick<ChainFacts, "witnessed" | "walked"> = {},
): Steps<Checked> {
  reopenClosedFiles(queries);
  for (;;) {
    const upTo = closedUpTo(queries, orgKey);
    const start = chainStart(queries, orgKey);
    // The head is read first: records added during the check come after it.
    const head = chainEnd(queries, orgKey);
    const known = walked && walked.last.seq >= (start?.seq ?? 0) ? walked : null;
    const check = new ChainCheck({ start, head, walked: known, ...(witnessed && { witnessed }) });
    let closed = known?.last.seq === upTo ? known : null;
    const verdict = yield* walk(queries, orgKey, check, {
      from: known?.last.seq,
      onTaken: ({ seq }) => {
        if (seq === upTo) closed = check.walked;
      },
    });
    // Records that were still to be checked may have been purged during the check.
    if (verdict.ok || chainStart(queries, orgKey)?.seq === start?.seq)
      return { verdict, closed, named: check.walked.named };
  }
}

/**
 * Checks the chain from a room's first record to its last. For a bound key, which must not learn the number of the organization's other
 * records.
 */
export function* checkRoom(queries: Queries, org_id: string, room_uid: string): Steps<Verdict> {
  const orgKey = chainKey(org_id);
  reopenClosedFiles(queries);
  for (;;) {
    const purged = chainStart(queries, orgKey)?.seq;
    const first = yield* firstOf(queries, { org_id, room_uid, order: "asc" });
    const last = yield* firstOf(queries, { org_id, room_uid, order: "desc" });
    if (!first || !last) return { ok: true, from_seq: 0, to_seq: 0, broken_at: null };
    const start = { seq: first.seq - 1, hash: first.prev_hash };
    const check = new ChainCheck({ start, head: last, isStretch: true });
    const verdict = yield* walk(queries, orgKey, check, { from: start.seq, to: last.seq });
    if (verdict.ok || chainStart(queries, orgKey)?.seq === purged) return verdict;
  }
}

/** A closed day may have no record of the room. */
function* firstOf(queries: Queries, scan: Scan): Steps<AuditRow | undefined> {
  for (const [row] of scanAudit(queries, scan, 1)) {
    if (row) return row;
    yield;
  }
  return undefined;
}

interface Stretch {
  /** Exclusive. */
  from?: number | undefined;
  to?: number;
  onTaken?(row: AuditRow): void;
}

function* walk(
  queries: Queries,
  orgKey: ChainKey,
  check: ChainCheck,
  { from = 0, to = Number.POSITIVE_INFINITY, onTaken }: Stretch,
): Steps<Verdict> {
  for (let after = from; ; ) {
    const rows = after < to ? recordsOf(queries, orgKey, after, Math.min(AT_ONCE, to - after)) : [];
    if (rows.length === 0) return check.end();
    for (const row of rows) {
      if (!check.take(row)) return check.end();
      onTaken?.(row);
    }
    after = rows.at(-1)?.seq ?? after;
    yield;
  }
}

/** Returns no records of a lost closed day, nor of the days after it. */
function recordsOf(queries: Queries, orgKey: ChainKey, after: number, limit: number): AuditRow[] {
  try {
    return chainRecords(queries, orgKey, after, limit);
  } catch (error) {
    if (!isLost(error)) throw error;
    return [];
  }
}
