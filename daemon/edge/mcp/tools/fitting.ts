/** Lists that fit an answer. */
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, Reply, ToolCall } from "../call.ts";
import { sizeOf } from "../shorten.ts";

/** Re-reads a page that is too long with lower limits until one fits, so that its cursor is correct. */
export async function fitting(call: ToolCall, ask: (more: Arguments) => Promise<Reply>): Promise<ToolAnswer> {
  const reply = await ask({});
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const { properties } = call.tool.input;
  const { bytes, items } = wholeOf(reply);
  if (!("limit" in properties && "cursor" in properties) || items === null || bytes <= call.most) {
    return { ok: true, result: reply.body };
  }
  for (let limit = Math.floor((items * call.most * 0.8) / bytes); ; limit = Math.floor(limit / 2)) {
    const again = await ask({ limit: Math.max(1, limit) });
    if (again.kind === "late") return stillUnderWay(call);
    // Items of uneven sizes may exceed it again.
    if (again.kind === "problem" || limit <= 1 || wholeOf(again).bytes <= call.most) return answerOf(again);
  }
}

const wholeOf = ({ whole, body }: Extract<Reply, { kind: "done" }>) =>
  whole ?? { bytes: sizeOf(body), items: lengthOf(body.items) };

const lengthOf = (items: unknown): number | null => (Array.isArray(items) ? items.length : null);
