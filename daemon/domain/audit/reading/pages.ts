/** Pages and lines of audit records as JSON. Has no state: reader threads use it too. */
import type { AuditRecord } from "../../../../shared/api/audit.ts";
import { toPage } from "../../../core/call/cursor.ts";
import type { Steps } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import type { Step } from "../../../db/readers/read.ts";
import { numberOf, staysOf } from "../room-stays.ts";
import { toRecord } from "../rows.ts";
import type { AuditRow } from "../table.ts";
import { type Scan, scanAudit } from "./scan.ts";

/** Lines of a step. */
const LINES_AT_ONCE = 100;

export interface PageInput {
  /** Kind of the page's cursors. */
  kind: string;
  scan: Scan;
  limit: number;
}

/** A page of records, read in steps. */
export function* pageOfRecords(
  queries: Queries,
  { kind, scan, limit }: PageInput,
): Steps<{ records: AuditRecord[]; next_cursor: string | null }> {
  const rows: AuditRow[] = [];
  for (const found of scanAudit(queries, scan, limit + 1)) {
    rows.push(...found);
    if (rows.length > limit) break;
    yield;
  }
  const page = toPage(kind, rows, limit, (row) => String(row.seq));
  return { records: page.rows.map(recordIn(queries, scan)), next_cursor: page.next_cursor };
}

export interface LinesInput {
  scan: Scan;
  /** Null: all that match. */
  limit: number | null;
}

/** Records as lines of JSON. */
export function* linesOfRecords(queries: Queries, { scan, limit }: LinesInput): Generator<Step<LinesInput>, void> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  const shown = recordIn(queries, scan);
  for (const rows of scanAudit(queries, scan, Math.min(left, LINES_AT_ONCE))) {
    const lines = rows.slice(0, left).map((row) => `${JSON.stringify(shown(row))}\n`);
    left -= lines.length;
    const after = rows[lines.length - 1]?.seq ?? scan.after;
    yield { text: lines.join(""), rest: { scan: { ...scan, after }, limit: limit === null ? null : left } };
    if (left <= 0) return;
  }
}

/** Converts rows to API records. Records of a room have the room's numbers, as its events do. */
function recordIn(queries: Queries, { org_id, room_uid }: Scan): (row: AuditRow) => AuditRecord {
  if (room_uid === undefined || org_id === null) return toRecord;
  const stays = staysOf(queries, room_uid);
  return (row) => ({ ...toRecord(row), seq: numberOf(stays, row.seq) });
}
