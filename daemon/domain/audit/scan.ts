/** Owns going through a chain, a part of it after another: what is asked for may be rare, and those who ask many. */
import { asc, desc } from "drizzle-orm";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import type { Queries } from "../../db/client.ts";
import { type ChainKey, chainKey, orgOfChain } from "./chain-key.ts";
import { type AuditFilter, listAudit, matching } from "./rows.ts";
import { type AuditRow, audit } from "./table.ts";

/** Some milliseconds' work. */
const LOOKED_AT = 5000;

/** For going through a chain: its organization takes turns with others. */
export function walkOf(key: ChainKey): Pieces {
  const orgId = orgOfChain(key);
  return new Pieces(loopTime, orgId === null ? "host" : ownerOf(orgId), "audit");
}

export type Scan = Omit<AuditFilter, "limit" | "last">;
type Stretch = Pick<AuditFilter, "after" | "last">;

/** Parts of what there is of the chain, or of the room's share of it, one after another, until `left`; the last has no `last`. */
export async function* stretches(
  queries: Queries,
  { org_id, room_uid, order, after }: Scan,
  left: AbortSignal,
): AsyncGenerator<Stretch> {
  const walk = walkOf(chainKey(org_id));
  for (let from = after; ; ) {
    await walk.turn();
    if (left.aborted) return;
    const end = queries
      .select({ seq: audit.seq })
      .from(audit)
      .where(matching({ org_id, room_uid, order, after: from }))
      .orderBy(order === "asc" ? asc(audit.seq) : desc(audit.seq))
      .limit(1)
      .offset(LOOKED_AT - 1)
      .get();
    yield { after: from, last: end?.seq };
    if (!end) return;
    from = end.seq;
  }
}

/** What matches, in order, so many at a time, until `left`: who has gone is looked for no more. */
export async function* scanAudit(
  queries: Queries,
  scan: Scan,
  atOnce: number,
  left: AbortSignal,
): AsyncGenerator<AuditRow[]> {
  const walk = walkOf(chainKey(scan.org_id));
  for await (const { after, last } of isSelective(scan)
    ? stretches(queries, scan, left)
    : [{ after: scan.after, last: undefined }]) {
    for (let from = after; ; ) {
      const rows = listAudit(queries, { ...scan, after: from, last, limit: atOnce });
      if (rows.length > 0) yield rows;
      if (rows.length < atOnce) break;
      from = rows.at(-1)?.seq;
      await walk.turn();
    }
  }
}

function isSelective({ org_id: _, room_uid: __, order: ___, after: ____, ...filters }: Scan): boolean {
  return Object.values(filters).some((value) => value !== undefined);
}
