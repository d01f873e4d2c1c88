/** Owns the calls that list audit records, of a room and of an organization. */
import { auditList, DEFAULT_AUDIT_PAGE, orgAuditList } from "../../shared/api/audit.ts";
import type { InputOf } from "../../shared/api/contract.ts";
import type { Bells } from "../core/bells.ts";
import { at } from "../core/clock.ts";
import { readCursor, toPage } from "../core/cursor.ts";
import type { Log } from "../core/log.ts";
import { type Bound, bind, type Caller, type RuleBreak } from "../core/operation.ts";
import type { Queries } from "../db/client.ts";
import { listAudit, toRecord } from "./store.ts";

export interface AuditDeps {
  queries: Queries;
  log: Log;
  bells: Bells;
  /** Who reads events and leaves what was sent untaken for so long is cut off. */
  slowReaderMs: number;
  /** Calls back after each commit. */
  onCommit(listener: () => void): void;
  findRoom(caller: Caller, roomId: string): { room_id: string; room_uid: string };
  /** Resolves `self` and throws org_not_found for any organization but the caller's. */
  findOrg(caller: Caller, orgId: string): string;
}

export function makeList(deps: AuditDeps): Bound[] {
  return [
    bind(auditList, {
      find: (call, params) => deps.findRoom(call.caller, String(params.room_id)),
      rules: momentRules,
      run: (call, input, room) => {
        call.audit.room_id = room.room_id;
        call.audit.room_uid = room.room_uid;
        return { outcome: "ok", body: pageOf(deps.queries, input, call.caller.org_id, room.room_uid) };
      },
    }),
    bind(orgAuditList, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      rules: momentRules,
      run: (_call, input, orgId) => ({ outcome: "ok", body: pageOf(deps.queries, input, orgId) }),
    }),
  ];
}

type Query = Omit<InputOf<typeof auditList>, "room_id">;

function pageOf(queries: Queries, query: Query, orgId: string, roomUid?: string) {
  const order = query.order ?? "desc";
  const limit = query.limit ?? DEFAULT_AUDIT_PAGE;
  const kind = `audit ${orgId} ${roomUid ?? ""} ${order}`;
  const position = readCursor(kind, query.cursor);
  const rows = listAudit(queries, {
    org_id: orgId,
    room_uid: roomUid,
    since: moment(query.since),
    until: moment(query.until),
    event: query.event,
    agent_id: query.agent_id,
    outcome: query.outcome,
    order,
    after: position === null ? undefined : Number(position),
    limit: limit + 1,
  });
  const page = toPage(kind, rows, limit, (row) => String(row.seq));
  return { items: page.rows.map(toRecord), next_cursor: page.next_cursor };
}

/** Names the moments that there are not, such as a 13th month. */
function momentRules(query: Partial<Query>): RuleBreak[] {
  const wrong = (["since", "until"] as const).filter((field) => Number.isNaN(msOf(query[field] ?? "0")));
  return wrong.map((field) => ({ field, code: "date-time", message: `${field} is no moment of the calendar.` }));
}

/** RFC 3339 or unix seconds, as the stored form, which sorts as text. */
function moment(text: string | undefined): string | undefined {
  return text === undefined ? undefined : at(Math.min(Math.max(msOf(text), 0), LAST_MOMENT_MS));
}

function msOf(text: string): number {
  return /^[\d.]+$/.test(text) ? Number(text) * 1000 : Date.parse(text);
}

/** Years beyond 9999 are written with a sign, which sorts before every digit. */
const LAST_MOMENT_MS = Date.parse("9999-12-31T23:59:59.999Z");
