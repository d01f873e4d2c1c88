/** Scans of a chain in steps of some milliseconds each, since matching records may be rare. Has no state: reader threads use it too. */
import { asc, desc } from "drizzle-orm";
import type { Queries } from "../../db/client.ts";
import { type AuditFilter, listAudit, matching } from "./rows.ts";
import { type AuditRow, audit } from "./table.ts";

/** Records of a step: some milliseconds of work. */
const LOOKED_AT = 2500;

export type Scan = Omit<AuditFilter, "limit" | "last">;
type Stretch = Pick<AuditFilter, "after" | "last">;

/** Consecutive parts of the chain, or of the room's share of it; the last has no `last`. */
export function* stretches(
  queries: Queries,
  { org_id, room_uid, order, after }: Pick<Scan, "org_id" | "room_uid" | "order" | "after">,
): Generator<Stretch, void> {
  for (let from = after; ; ) {
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

/** Matching records in order, at most `atOnce` in a step; a step may find none. */
export function* scanAudit(queries: Queries, scan: Scan, atOnce: number): Generator<AuditRow[], void> {
  const parts = isSelective(scan) ? stretches(queries, scan) : [{ after: scan.after, last: undefined }];
  for (const { after, last } of parts) {
    for (let from = after; ; ) {
      const rows = listAudit(queries, { ...scan, after: from, last, limit: atOnce });
      yield rows;
      if (rows.length < atOnce) break;
      from = rows.at(-1)?.seq;
    }
  }
}

function isSelective({ org_id: _, room_uid: __, order: ___, after: ____, ...filters }: Scan): boolean {
  return Object.values(filters).some((value) => value !== undefined);
}
