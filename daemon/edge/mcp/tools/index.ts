/** Owns which tool does more than pass its arguments to its operation. */
import { type Answer, answerOf, stillUnderWay } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";
import { summarize } from "./audit.ts";
import { arrive } from "./barrier.ts";
import { build } from "./build.ts";
import { computer } from "./computer.ts";
import { create } from "./create.ts";
import { exec } from "./exec.ts";
import { once } from "./once.ts";
import { request } from "./request.ts";
import { wait } from "./wait.ts";

/** `input` has been checked by the tool's own rules. */
type CarryOut = (call: ToolCall, input: never) => Promise<Answer>;

const OWN_WAYS: Record<string, CarryOut> = {
  sandbox_create: create,
  sandbox_exec: exec,
  agent_request: request,
  agent_wait: wait,
  barrier_arrive: arrive,
  audit_list: summarize,
  org_audit_list: summarize,
  template_build: build,
  computer,
  sandbox_snapshot: once,
  sandbox_fork: once,
  sandbox_rollback: once,
  sandbox_hibernate: once,
  sandbox_resume: once,
  room_checkpoint: once,
  room_fork: once,
  room_restore: once,
};

/** Whoever names no organization means its own. */
const DEFAULTS: Arguments = { org_id: "self" };

export async function carryOut(call: ToolCall): Promise<Answer> {
  const ownWay = OWN_WAYS[call.tool.name];
  if (ownWay) {
    const checked = call.check();
    return checked.kind === "problem" ? answerOf(checked) : await ownWay(call, checked.input as never);
  }
  const reply = await call.pass("org_id" in call.tool.input.properties ? DEFAULTS : {});
  return reply.kind === "late" ? stillUnderWay(call) : answerOf(reply);
}
