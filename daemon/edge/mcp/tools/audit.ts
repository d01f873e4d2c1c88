/** Owns audit_list and org_audit_list: what happened, summed up, and the last records of it; or the records, raw. */
import { auditSummary, orgAuditSummary } from "../../../../shared/api/audit.ts";
import { argumentsOf } from "../../../../shared/api/tool.ts";
import { SHOWN_RECORDS } from "../../../../shared/api/tools.ts";
import { type Answer, answerOf, stillUnderWay } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";

export async function summarize(call: ToolCall, { raw, ...input }: Arguments): Promise<Answer> {
  const { operation } = call.tool;
  const isOrg = "org_id" in operation.params.properties;
  const args = isOrg ? { org_id: "self", ...input } : input;
  const records = await call.ask(operation, raw ? args : { ...args, limit: input.limit ?? SHOWN_RECORDS });
  if (records.kind === "late") return stillUnderWay(call);
  if (records.kind === "problem" || raw) return answerOf(records);
  const summing = isOrg ? orgAuditSummary : auditSummary;
  const filters = Object.entries(args).filter(([name]) => name in argumentsOf(summing));
  const summary = await call.ask(summing, Object.fromEntries(filters));
  if (summary.kind === "late") return stillUnderWay(call);
  if (summary.kind === "problem") return answerOf(summary);
  return { ok: true, result: { summary: summary.body, ...records.body } };
}
