/** agent_wait: an agent's inbox by long poll, or a barrier at which it has arrived. */
import { type BarrierRecord, barrierGet } from "../../../../shared/api/barriers.ts";
import type { InputOf } from "../../../../shared/api/contract.ts";
import { agentWait } from "../../../../shared/api/fabric.ts";
import { DEFAULT_INBOX_WAIT_MS } from "../../../../shared/api/mcp/tools.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";
import { boundedInbox, type Inbox } from "../shorten.ts";
import { arrive } from "./barrier.ts";

interface Input extends InputOf<typeof agentWait> {
  barrier_id?: string;
  generation?: number;
}

export async function wait(call: ToolCall, { barrier_id, generation, ...input }: Input): Promise<ToolAnswer> {
  if (barrier_id !== undefined)
    return await atBarrier(call, { ...input, barrier_id, ...(generation === undefined ? {} : { generation }) });
  const wait_ms = call.waitMs(input.wait_ms ?? DEFAULT_INBOX_WAIT_MS);
  const reply = await call.askShort(agentWait, { ...input, wait_ms });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const { cursor: _, ...again } = input;
  const shown = boundedInbox(reply.body as unknown as Inbox, call.most);
  const next = { tool: "agent_wait", arguments: { ...again, after: shown.next_after } };
  const isClipped = shown.items.some(({ payload_left_out }) => payload_left_out !== undefined);
  const rest = { tool: "agent_wait", arguments: { ...again, limit: 1 } };
  return { ok: true, result: { ...shown, next, ...(isClipped ? { rest } : {}) } };
}

/** Without a generation: the newest one, or the next if that has passed without the agent. */
async function atBarrier(call: ToolCall, input: Input & { barrier_id: string }): Promise<ToolAnswer> {
  const { room_id, barrier_id, agent_id, wait_ms } = input;
  let { generation } = input;
  if (generation === undefined) {
    const found = await call.ask(barrierGet, { room_id, barrier_id });
    if (found.kind === "late") return stillUnderWay(call);
    if (found.kind === "problem") return answerOf(found);
    const newest = found.body as unknown as BarrierRecord;
    const isMine = newest.state === "waiting" || (agent_id !== undefined && newest.arrived.includes(agent_id));
    generation = isMine ? newest.generation : newest.generation + 1;
  }
  const arrival = { room_id, barrier_id, generation, timeout_ms: wait_ms ?? DEFAULT_INBOX_WAIT_MS };
  return await arrive(call, agent_id === undefined ? arrival : { ...arrival, agent_id });
}
