/** Scans of a chain in steps of a few milliseconds each, since matching records may be rare. Has no state: reader threads use it too. */
import { asc, desc } from "drizzle-orm";
import type { Steps } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import { isLost } from "../../../db/closed-files.ts";
import { chainKey } from "../chain/chain-key.ts";
import { type ChainPart, partOf, pastPart, shareOf } from "../days/parts.ts";
import { type AuditFilter, listPart, matching } from "../rows.ts";
import { type AuditRow, audit } from "../table.ts";

/** Records per step: a few milliseconds of work. */
const LOOKED_AT = 2500;

export type Scan = Omit<AuditFilter, "limit" | "last">;

interface Stretch extends Pick<AuditFilter, "after" | "last"> {
  /** Database of these records; valid for the current step only. */
  queries: Queries;
  isFull: boolean;
}

type Range = Pick<AuditFilter, "org_id" | "room_uid" | "order" | "after" | "last" | "since" | "until">;

/** Consecutive parts of the chain, or of the room's share of it, each in one database. Throws LostFile. */
export function* stretches(queries: Queries, scan: Range): Generator<Stretch, void> {
  for (let from = scan.after; ; ) {
    const part = partOf(queries, chainKey(scan.org_id), { ...scan, from });
    if (!part) return;
    const { stretch, goesOn } = stretchOf(part, scan, from);
    yield stretch;
    if (goesOn === null) return;
    from = goesOn;
  }
}

/** The first stretch of a part, and the place after it; null: there are no more. */
function stretchOf(part: ChainPart, { org_id, room_uid, order, last }: Range, from: number | undefined) {
  const { next, ...share } = shareOf(part, order, { after: from, last });
  const end = part.queries
    .select({ seq: audit.seq })
    .from(audit)
    .where(matching({ org_id, room_uid, order, ...share }))
    .orderBy(order === "asc" ? asc(audit.seq) : desc(audit.seq))
    .limit(1)
    .offset(LOOKED_AT - 1)
    .get();
  const stretch = {
    queries: part.queries,
    after: share.after,
    last: end?.seq ?? share.last,
    isFull: end !== undefined,
  };
  return { stretch, goesOn: end?.seq ?? next };
}

/** Matching records in order, at most `atOnce` in a step; a step may find none. Throws LostFile. */
export function* scanAudit(queries: Queries, scan: Scan, atOnce: number): Generator<AuditRow[], void> {
  const parts = isSelective(scan) ? stretches(queries, scan) : [{ after: scan.after, last: undefined }];
  for (const { after, last } of parts) {
    for (let from: number | null | undefined = after; from !== null; ) {
      const { rows, next } = listPart(queries, { ...scan, after: from, last, limit: atOnce });
      yield rows;
      from = next;
    }
  }
}

function isSelective({ org_id: _, room_uid: __, order: ___, after: ____, ...filters }: Scan): boolean {
  return Object.values(filters).some((value) => value !== undefined);
}

/** Matching records, at most `limit`, without those of lost closed days. A step for each stretch. */
export function* readableRecords(
  queries: Queries,
  scan: Scan & Pick<AuditFilter, "last">,
  limit: number,
): Steps<AuditRow[]> {
  const found: AuditRow[] = [];
  const key = chainKey(scan.org_id);
  for (let from: number | null | undefined = scan.after; from !== null && found.length < limit; ) {
    const place = { ...scan, from };
    try {
      const part = partOf(queries, key, place);
      if (!part) break;
      const { stretch, goesOn } = stretchOf(part, scan, from);
      const { after, last } = stretch;
      found.push(...listPart(queries, { ...scan, after, last, limit: limit - found.length }).rows);
      from = goesOn;
    } catch (error) {
      if (!isLost(error)) throw error;
      from = pastPart(queries, key, place);
    }
    yield;
  }
  return found;
}
