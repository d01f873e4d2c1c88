/** The tools audit_list and org_audit_list: a summary of events, or with raw the records. */
import { auditSummary, orgAuditSummary } from "../../../../shared/api/audit.ts";
import { argumentsOf } from "../../../../shared/api/mcp/tool.ts";
import { SHOWN_RECORDS } from "../../../../shared/api/mcp/tools.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";
import { fitting } from "./fitting.ts";

export async function summarize(call: ToolCall, { raw, ...input }: Arguments): Promise<ToolAnswer> {
  const { operation } = call.tool;
  const isOrg = "org_id" in operation.params.properties;
  const args = isOrg ? { org_id: "self", ...input } : input;
  const summing = isOrg ? orgAuditSummary : auditSummary;
  const filters = Object.entries(args).filter(([name]) => name in argumentsOf(summing));
  const limit = input.limit ?? SHOWN_RECORDS;
  if (raw) return await fitting(call, (most) => call.askShort(operation, { ...args, limit, ...most }));
  const reply = await call.ask(summing, Object.fromEntries(filters));
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  return { ok: true, result: { summary: reply.body } };
}
