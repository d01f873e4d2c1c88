/**
 * Retention of records: the oldest records of a chain are purged when their time is over, closed days as whole files. Each purge is itself
 * a record with the new start of the chain. This distinguishes a purged beginning from a beginning removed in another way.
 */
import { and, asc, eq, gt, lte } from "drizzle-orm";
import { at, wallMs } from "../../core/clock.ts";
import { repeat } from "../../core/concurrency/repeat.ts";
import { DiskFailure } from "../../core/disk-failure.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { ChainKey } from "./chain/chain-key.ts";
import { PURGED } from "./chain/hash-chain.ts";
import { closeDays, type DaysDeps, purgeDays } from "./days/close.ts";
import { closedUpTo } from "./days/parts.ts";
import { purgeFormerEvents } from "./room-numbers.ts";
import { chainStart } from "./rows.ts";
import { appendPurged, chainHeads } from "./store.ts";
import { audit, auditStarts } from "./table.ts";

/** Records per commit: a few milliseconds of work. */
const AT_ONCE = 500;
/** Interval of the check for ended days. */
const LOOK_MS = 3_600_000;
/** Log message. */
export const CLOSE_FAILED = "failed to close a day of the audit";

/**
 * Closes the days that have ended, and purges records older than `keepMs`, now and every hour. Returns a function that stops it. With 0,
 * nothing is purged. `onLost` stops the service: data written to a closed day may be lost.
 */
export function keepRetention(deps: DaysDeps, keepMs: number, onLost: (error: DiskFailure) => void): () => void {
  const ending = new AbortController();
  const stop = repeat(keepMs === 0 ? LOOK_MS : Math.min(keepMs, LOOK_MS), async () => {
    try {
      await closeDays(deps, ending.signal);
    } catch (error) {
      if (error instanceof DiskFailure) return onLost(error);
      deps.log.error(CLOSE_FAILED, { error: describeError(error) });
    }
    try {
      if (keepMs > 0) await purgeAll(deps, at(wallMs() - keepMs));
    } catch (error) {
      deps.log.error("failed to purge the audit", { error: describeError(error) });
    }
  });
  return () => {
    ending.abort();
    stop();
  };
}

async function purgeAll(deps: DaysDeps, before: string): Promise<void> {
  const { database } = deps;
  while ((await database.commit((queries) => purgeFormerEvents(queries, before, AT_ONCE))) === AT_ONCE);
  await purgeDays(deps, before);
  for (const orgKey of chainHeads(database.queries).keys()) {
    for (;;) {
      const purged = await database.commit((queries) => purgeAudit(queries, orgKey, before));
      if (purged < AT_ONCE) break;
    }
  }
}

/**
 * Within a transaction: purges the oldest records of a chain up to the first that is not from before the moment; returns their number.
 * Purges none while closed days have older records.
 */
export function purgeAudit(queries: Queries, orgKey: ChainKey, before: string): number {
  const start = chainStart(queries, orgKey);
  if (closedUpTo(queries, orgKey) > (start?.seq ?? 0)) return 0;
  const oldest = queries
    .select({ seq: audit.seq, hash: audit.hash, at: audit.at, event: audit.event })
    .from(audit)
    .where(and(eq(audit.org_key, orgKey), gt(audit.seq, start?.seq ?? 0)))
    .orderBy(asc(audit.seq))
    .limit(AT_ONCE)
    .all();
  const kept = oldest.findIndex((row) => row.at >= before);
  const due = kept === -1 ? oldest : oldest.slice(0, kept);
  const last = due.at(-1);
  // In an inactive chain the record of the last purge stays: purging it would only add another one.
  if (!last || due.every(({ event }) => event === PURGED)) return 0;
  const { seq, hash } = last;
  queries
    .insert(auditStarts)
    .values({ org_key: orgKey, seq, hash })
    .onConflictDoUpdate({ target: auditStarts.org_key, set: { seq, hash } })
    .run();
  queries
    .delete(audit)
    .where(and(eq(audit.org_key, orgKey), lte(audit.seq, seq)))
    .run();
  appendPurged(queries, orgKey, { seq, hash }, due.length);
  return due.length;
}
