/**
 * Tools that save and copy sandboxes and rooms, which may take longer than a tool may: such a call has an idempotency key, the client's or
 * a generated one, by which the next call gets the result of the first, and nothing is done twice.
 */
import { randomUUID } from "node:crypto";
import { sleep } from "../../../core/clock.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";

const LOOK_MS = 500;

export async function once(
  call: ToolCall,
  { idempotency_key = randomUUID(), ...input }: Arguments & { idempotency_key?: string },
): Promise<ToolAnswer> {
  const next = { tool: call.tool.name, arguments: { ...call.given, idempotency_key } };
  for (;;) {
    const reply = await call.ask(call.tool.operation, { ...input, idempotency_key });
    if (reply.kind === "late") return stillUnderWay(call, next);
    // The previous call with the same key is still in progress.
    if (reply.kind !== "problem" || reply.problem.code !== "idempotency_in_progress") return answerOf(reply);
    if (call.waitMs(LOOK_MS) < LOOK_MS) return stillUnderWay(call, next);
    await sleep(LOOK_MS);
  }
}
