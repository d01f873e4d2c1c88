/** agent_request: a request to one agent, and its reply, in as many calls as it takes. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { agentSend, DEFAULT_REPLY_WAIT_MS } from "../../../../shared/api/fabric.ts";
import { answerOf, failed, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";

type Input = InputOf<typeof agentSend> & { idempotency_key?: string };

export async function request(
  call: ToolCall,
  { idempotency_key, timeout_ms: requestedMs, ...input }: Input,
): Promise<ToolAnswer> {
  const message_id = input.message_id ?? call.nameOf("msg", idempotency_key, [input.room_id]);
  const message = { ...input, kind: "request", message_id };
  const wantedMs = requestedMs ?? DEFAULT_REPLY_WAIT_MS;
  const timeout_ms = Math.max(1, call.waitMs(wantedMs));
  const reply = await call.ask(agentSend, { ...message, wait_reply: true, timeout_ms });
  const next = {
    tool: "agent_request",
    arguments: { ...input, message_id, timeout_ms: wantedMs > timeout_ms ? wantedMs - timeout_ms : wantedMs },
  };
  if (reply.kind === "late") return stillUnderWay(call, next);
  if (reply.kind !== "problem" || reply.problem.code !== "reply_timeout") return answerOf(reply);
  if (wantedMs <= timeout_ms) return failed(reply, next);
  const receipt = await call.ask(agentSend, message);
  if (receipt.kind === "late") return stillUnderWay(call, next);
  if (receipt.kind === "problem") return answerOf(receipt);
  return { ok: true, result: { ...receipt.body, reply: null, next } };
}
