/** Owns the calls that list audit records, of a room and of an organization: page by page, or all of them as lines of JSON. */

import { type AuditRecord, auditList, DEFAULT_AUDIT_PAGE, orgAuditList } from "../../../shared/api/audit.ts";
import { makeCursor, readCursor, toPage } from "../../core/cursor.ts";
import { type Bound, bind, type EventsReply, type KeyCall, type StreamEvent } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { chainKey } from "./chain-key.ts";
import type { AuditDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { momentRules, type Query, scanOf } from "./query.ts";
import type { Readers } from "./readers.ts";
import { RoomNumbers } from "./room-numbers.ts";
import { toRecord } from "./rows.ts";
import { type Scan, scanAudit } from "./scan.ts";
import type { AuditRow } from "./table.ts";

/** Lines of an export that are in memory at once. */
const LINES_AT_ONCE = 200;
/** Names its cursors. */
const LIST = "audit";

export function makeList(deps: AuditDeps, readers: Readers): Bound[] {
  const list = async (call: KeyCall, query: Query, scan: Scan, ndjson: boolean) => {
    if (!ndjson)
      return { outcome: "ok" as const, body: await pageOfAudit(deps.database.queries, LIST, query, scan, call.signal) };
    const from = { ...scan, after: placeOf(LIST, query, scan).after };
    return { outcome: "ok" as const, events: exported(deps, readers, call, from, query.limit) };
  };
  return [
    bind(auditList, {
      find: (call, params) => findRoom(deps, call, params),
      rules: momentRules,
      run: (call, input, { room_uid }, { ndjson }) =>
        list(call, input, scanOf(input, call.caller.org_id, room_uid), ndjson),
    }),
    bind(orgAuditList, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      rules: momentRules,
      run: (call, input, orgId, { ndjson }) => list(call, input, scanOf(input, orgId), ndjson),
    }),
  ];
}

/** A page of what belongs to no organization: logins that failed, what operators did. Throws validation_failed, invalid_cursor. */
export async function listService(queries: Queries, query: Query, left = new AbortController().signal) {
  const errors = momentRules(query);
  if (errors.length > 0) throw new ServiceError("validation_failed", { errors });
  return await pageOfAudit(queries, LIST, query, scanOf(query, null), left);
}

/** A page of records; a cursor of one list, by its name, is none of another. Throws invalid_cursor. */
export async function pageOfAudit(
  queries: Queries,
  list: string,
  query: Pick<Query, "cursor" | "limit">,
  scan: Scan,
  left: AbortSignal,
) {
  const { kind, after } = placeOf(list, query, scan);
  const limit = query.limit ?? DEFAULT_AUDIT_PAGE;
  const rows = await first(scanAudit(queries, { ...scan, after }, limit + 1, left), limit + 1);
  const page = toPage(kind, rows, limit, (row) => String(row.seq));
  return { items: page.rows.map(recordIn(queries, scan)), next_cursor: page.next_cursor };
}

/** How records are told: those of a room by the room's numbers, as its events are. */
function recordIn(queries: Queries, { org_id, room_uid }: Scan): (row: AuditRow) => AuditRecord {
  if (room_uid === undefined || org_id === null) return toRecord;
  const numbers = new RoomNumbers(queries, { org_id, room_uid });
  return (row) => ({ ...toRecord(row), seq: numbers.of(row.seq) });
}

const kindOf = (list: string, orgId: string | null, roomUid: string | undefined, order: string) =>
  `${list} ${chainKey(orgId)} ${roomUid ?? ""} ${order}`;

/** The cursor of the page after a record of an organization's list: each host has it for its own chain. */
export function cursorAfterRecord(orgId: string, order: "asc" | "desc", seq: number): string {
  return makeCursor(kindOf(LIST, orgId, undefined, order), String(seq));
}

/** Throws invalid_cursor. */
function placeOf(list: string, { cursor }: Pick<Query, "cursor">, { org_id, room_uid, order }: Scan) {
  const kind = kindOf(list, org_id, room_uid, order);
  const position = readCursor(kind, cursor);
  return { kind, after: position === null ? undefined : Number(position) };
}

async function first(pages: AsyncGenerator<AuditRow[]>, limit: number): Promise<AuditRow[]> {
  const rows: AuditRow[] = [];
  for await (const page of pages) {
    rows.push(...page);
    if (rows.length >= limit) break;
  }
  return rows.slice(0, limit);
}

function exported(
  deps: AuditDeps,
  readers: Readers,
  call: KeyCall,
  scan: Scan,
  limit = Number.POSITIVE_INFINITY,
): EventsReply {
  const gone = new AbortController();
  const cancel = () => gone.abort();
  const signal = AbortSignal.any([call.signal, gone.signal]);
  readers.add(call.caller, signal, cancel);
  const { org_id } = call.caller;
  const cut = () => {
    deps.log.info("reader of an audit's export cut off", { org_id, key_id: call.caller.key_id });
    cancel();
  };
  return { events: lines(deps, scan, limit, signal, cancel), cancel, slow: { ms: deps.slowReaderMs, cut } };
}

async function* lines(
  { database, log }: AuditDeps,
  scan: Scan,
  limit: number,
  signal: AbortSignal,
  over: () => void,
): AsyncGenerator<readonly StreamEvent[]> {
  let left = limit;
  const told = recordIn(database.queries, scan);
  try {
    for await (const rows of scanAudit(database.queries, scan, Math.min(limit, LINES_AT_ONCE), signal)) {
      if (signal.aborted) return;
      yield rows.slice(0, left).map((row) => ({ id: row.seq, data: told(row) }));
      left -= rows.length;
      if (left <= 0) return;
    }
  } catch (error) {
    log.error("audit's export broke off", { error: String(error) });
    yield [{ id: null, data: { type: "error", code: "internal" } }];
  } finally {
    over();
  }
}
