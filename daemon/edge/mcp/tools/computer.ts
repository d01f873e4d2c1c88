/** computer: its picture is returned as an image, which models see, and not as text, which they would pay for. */
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";

export async function computer(call: ToolCall): Promise<ToolAnswer> {
  const reply = await call.pass(call.given);
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const { screenshot_b64, ...result } = reply.body;
  return { ok: true, result, ...(typeof screenshot_b64 === "string" && { picture: screenshot_b64 }) };
}
