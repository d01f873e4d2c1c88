/** Lists that fit an answer. */
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, Reply, ToolCall } from "../call.ts";
import { sizeOf } from "../shorten.ts";

/** Re-reads a page that is too long with a limit that fits, so that its cursor is correct. */
export async function fitting(call: ToolCall, ask: (more: Arguments) => Promise<Reply>): Promise<ToolAnswer> {
  const reply = await ask({});
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const { properties } = call.tool.input;
  const { bytes, items } = reply.whole ?? { bytes: sizeOf(reply.body), items: lengthOf(reply.body.items) };
  if (!("limit" in properties && "cursor" in properties) || items === null || bytes <= call.most) {
    return { ok: true, result: reply.body };
  }
  const again = await ask({ limit: Math.max(1, Math.floor((items * call.most * 0.8) / bytes)) });
  return again.kind === "late" ? stillUnderWay(call) : answerOf(again);
}

const lengthOf = (items: unknown): number | null => (Array.isArray(items) ? items.length : null);
