/** Parses the times and filters of a query on the audit. */
import type { orgAuditList } from "../../../../shared/api/audit.ts";
import type { InputOf } from "../../../../shared/api/contract.ts";
import type { RuleBreak } from "../../../core/call/operation.ts";
import { at } from "../../../core/clock.ts";
import type { Scan } from "./scan.ts";

type AuditQuery = Omit<InputOf<typeof orgAuditList>, "org_id">;
export type Query = { [Name in keyof AuditQuery]?: AuditQuery[Name] | undefined };

export function scanOf(query: Query, orgId: string | null, roomUid?: string): Scan {
  const { room_id, event, agent_id, outcome, source, actor_id, request_id, trace_id, audit_id, order = "desc" } = query;
  const span = { since: moment(query.since), until: moment(query.until) };
  return {
    org_id: orgId,
    room_uid: roomUid,
    room_id: roomUid === undefined ? room_id : undefined,
    ...span,
    event,
    agent_id,
    outcome,
    source,
    actor_id,
    request_id,
    trace_id,
    audit_id,
    reads: query.reads === false ? false : undefined,
    order,
  };
}

/** Reports times that do not exist, such as a 13th month. */
export function momentRules(query: Pick<Query, "since" | "until">): RuleBreak[] {
  const wrong = (["since", "until"] as const).filter((field) => Number.isNaN(msOf(query[field] ?? "0")));
  return wrong.map((field) => ({ field, code: "date-time", message: `${field} is not a date and time that exists.` }));
}

/** Converts RFC 3339 or unix seconds to the stored form, which sorts as text. */
function moment(text: string | undefined): string | undefined {
  return text === undefined ? undefined : at(Math.min(Math.max(msOf(text), 0), LAST_MOMENT_MS));
}

function msOf(text: string): number {
  return /^[\d.]+$/.test(text) ? Number(text) * 1000 : Date.parse(text);
}

/** Years above 9999 are written with a sign, which sorts before every digit. */
const LAST_MOMENT_MS = Date.parse("9999-12-31T23:59:59.999Z");
