/** The MCP tool `sandbox_create`: waits for a sandbox that is slow to be ready. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { MAX_TOOL_WAIT_MS } from "../../../../shared/api/mcp/tools.ts";
import { sandboxCreate } from "../../../../shared/api/sandboxes.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";

type Input = Partial<InputOf<typeof sandboxCreate>> & { idempotency_key?: string };

export async function create(call: ToolCall, input: Input): Promise<ToolAnswer> {
  const wait_timeout_ms = call.waitMs(input.wait_timeout_ms ?? MAX_TOOL_WAIT_MS);
  const reply = await call.ask(sandboxCreate, { ...input, wait_timeout_ms });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem" || reply.body.state === "running") return answerOf(reply);
  const { room_id, sandbox_id } = reply.body;
  // A command waits until the sandbox is ready.
  const next = { tool: "sandbox_exec", arguments: { room_id, sandbox: sandbox_id, argv: ["true"] } };
  return { ok: true, result: { ...reply.body, next } };
}
