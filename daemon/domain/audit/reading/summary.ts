/** The calls that summarize the audit: counts, and a paragraph of text. */
import { auditSummary, orgAuditSummary } from "../../../../shared/api/audit.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { ownerOf } from "../../../core/loop/index.ts";
import type { AuditDeps } from "../deps.ts";
import { findRoom } from "../find.ts";
import { momentRules, type Query, scanOf } from "./query.ts";
import { readSummary } from "./reads.ts";
import type { Scan } from "./scan.ts";
import { aboutOf } from "./summarize.ts";

export function makeSummary(deps: AuditDeps): Bound[] {
  const summarized = async ({ caller, signal }: KeyCall, scan: Scan, about: string) => {
    const json = await deps.reads.read(readSummary, { scan, about }, { owner: ownerOf(caller.org_id), signal });
    return { outcome: "ok" as const, json };
  };
  return [
    bind(auditSummary, {
      find: (call, params) => findRoom(deps, call, params),
      rules: momentRules,
      run: (call, input, { room_id, room_uid }) =>
        summarized(call, scanOf(input, call.caller.org_id, room_uid), `Room ${room_id}`),
    }),
    bind(orgAuditSummary, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      rules: momentRules,
      run: (call, input: Query, orgId) => summarized(call, scanOf(input, orgId), aboutOf(input.room_id)),
    }),
  ];
}
