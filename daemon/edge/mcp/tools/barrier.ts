/** barrier_arrive: an arrival, and the wait for the others, in as many calls as it takes. */
import { barrierArrive, DEFAULT_BARRIER_WAIT_MS } from "../../../../shared/api/barriers.ts";
import type { InputOf } from "../../../../shared/api/contract.ts";
import { answerOf, failed, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";

type Input = InputOf<typeof barrierArrive> & { idempotency_key?: string };

export async function arrive(call: ToolCall, { idempotency_key: _, timeout_ms, ...input }: Input): Promise<ToolAnswer> {
  const wantedMs = timeout_ms ?? DEFAULT_BARRIER_WAIT_MS;
  const waitMs = call.waitMs(wantedMs);
  const left = wantedMs > waitMs ? wantedMs - waitMs : wantedMs;
  const goOn = (generation: unknown) => ({
    tool: "barrier_arrive",
    arguments: { ...input, generation, timeout_ms: left } as Arguments,
  });
  const reply = await call.ask(barrierArrive, { ...input, timeout_ms: waitMs });
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "done") {
    return reply.body.state === "waiting"
      ? { ok: true, result: { ...reply.body, next: goOn(reply.body.generation) } }
      : answerOf(reply);
  }
  if (reply.problem.code !== "barrier_timeout") return answerOf(reply);
  const { generation } = reply.problem.details;
  if (wantedMs <= waitMs) return failed(reply, goOn(generation));
  const standing = await call.ask(barrierArrive, { ...input, generation, timeout_ms: 0 });
  if (standing.kind === "late") return stillUnderWay(call, goOn(generation));
  if (standing.kind === "problem" || standing.body.state !== "waiting") return answerOf(standing);
  return { ok: true, result: { ...standing.body, next: goOn(generation) } };
}
