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
  const summing = isOrg ? orgAuditSummary : auditSummary;
  const filters = Object.entries(args).filter(([name]) => name in argumentsOf(summing));
  // At once: neither tells of the other.
  const [records, summary] = await Promise.all([
    call.ask(operation, raw ? args : { ...args, limit: input.limit ?? SHOWN_RECORDS }),
    raw ? null : call.ask(summing, Object.fromEntries(filters)),
  ]);
  if (records.kind === "late") return stillUnderWay(call);
  if (records.kind === "problem" || !summary) return answerOf(records);
  if (summary.kind === "late") return stillUnderWay(call);
  if (summary.kind === "problem") return answerOf(summary);
  return { ok: true, result: { summary: summary.body, ...records.body } };
}
