/** Owns sandbox_create: the template's memory, or the snapshot's, where none is named, and waiting for a sandbox that is slow to be ready. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { MEMORY_MIB_MIN, sandboxCreate } from "../../../../shared/api/sandboxes.ts";
import { snapshotGet } from "../../../../shared/api/snapshots.ts";
import { templateGet } from "../../../../shared/api/templates.ts";
import { MAX_TOOL_WAIT_MS } from "../../../../shared/api/tools.ts";
import { type Answer, answerOf, stillUnderWay } from "../answer.ts";
import type { ToolCall } from "../call.ts";

type Input = Partial<InputOf<typeof sandboxCreate>> & { idempotency_key?: string };

export async function create(call: ToolCall, input: Input): Promise<Answer> {
  const memory_mib = input.memory_mib ?? (await defaultMemory(call, input));
  const wait_timeout_ms = call.waitMs(input.wait_timeout_ms ?? MAX_TOOL_WAIT_MS);
  const reply = await call.ask(sandboxCreate, { ...input, memory_mib, wait_timeout_ms });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem" || reply.body.state === "running") return answerOf(reply);
  const { room_id, sandbox_id } = reply.body;
  // Running something waits until the sandbox is ready.
  const next = { tool: "sandbox_exec", arguments: { room_id, sandbox: sandbox_id, argv: ["true"] } };
  return { ok: true, result: { ...reply.body, next } };
}

async function defaultMemory(
  call: ToolCall,
  { room_id, snapshot_id, template_id = "default" }: Input,
): Promise<unknown> {
  const reply =
    snapshot_id === undefined
      ? await call.ask(templateGet, { template_id })
      : await call.ask(snapshotGet, { room_id, snapshot_id });
  if (reply.kind === "done") return reply.body.default_memory_mib ?? reply.body.memory_mib;
  // Of one that there is not, or that the key may not look at, the operation itself says so.
  return reply.kind === "problem" && reply.problem.status === 404 ? MEMORY_MIB_MIN : undefined;
}
