/**
 * Owns how long records are kept: whole beginnings of chains go when their time is over, and each purge is a record of its own,
 * which says where the chain now begins. So a beginning that was taken away in another way is told from one that was purged.
 */
import { and, asc, eq, gt, lte } from "drizzle-orm";
import { at, now, wallMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { repeat } from "../../core/repeat.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { PURGED } from "./chain.ts";
import { type ChainKey, orgOfChain } from "./chain-key.ts";
import { purgeFormerEvents } from "./room-numbers.ts";
import { chainStart } from "./rows.ts";
import { appendAudit, chainHeads } from "./store.ts";
import { audit, auditStarts } from "./table.ts";

/** Some milliseconds' work for one commit. */
const AT_ONCE = 2000;
const DAY_MS = 24 * 3600 * 1000;
const ACTOR = { type: "system", id: "retention", name: "retention" };

/** Purges what is older than `keepMs` now and day by day; what is returned ends that. With 0, everything is kept. */
export function keepRetention(database: Database, log: Log, keepMs: number): () => void {
  if (keepMs === 0) return () => {};
  return repeat(Math.min(keepMs, DAY_MS), async () => {
    try {
      await purgeAll(database, at(wallMs() - keepMs));
    } catch (error) {
      log.error("audit not purged", { error: describeError(error) });
    }
  });
}

async function purgeAll(database: Database, before: string): Promise<void> {
  while ((await database.commit((queries) => purgeFormerEvents(queries, before, AT_ONCE))) === AT_ONCE);
  for (const orgKey of chainHeads(database.queries).keys()) {
    for (;;) {
      const purged = await database.commit((queries) => purgeAudit(queries, orgKey, before));
      if (purged < AT_ONCE) break;
    }
  }
}

/** Within a transaction: purges the oldest records of a chain, up to the first that is not from before; returns how many. */
export function purgeAudit(queries: Queries, orgKey: ChainKey, before: string): number {
  const start = chainStart(queries, orgKey);
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
  // Where nothing happens any more, the record of the last purge stays: another purge would only leave another.
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
  appendAudit(queries, {
    event: PURGED,
    outcome: "success",
    at: now(),
    org_id: orgOfChain(orgKey),
    actor: ACTOR,
    source: "reconciler",
    details: { seq, hash, records: due.length },
  });
  return due.length;
}
