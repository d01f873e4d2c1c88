/** Tools that do more than pass their arguments to their operation. */
import { answerOf, MAX_RESULT, sizeOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";
import { SMALL } from "../small/index.ts";
import { summarize } from "./audit.ts";
import { arrive } from "./barrier.ts";
import { build } from "./build.ts";
import { computer } from "./computer.ts";
import { create } from "./create.ts";
import { exec } from "./exec.ts";
import { once } from "./once.ts";
import { read } from "./read.ts";
import { request } from "./request.ts";
import { wait } from "./wait.ts";

/** `input` has been checked by the tool's own rules. */
type CarryOut = (call: ToolCall, input: never) => Promise<ToolAnswer>;

const OWN_WAYS: Record<string, CarryOut> = {
  sandbox_create: create,
  sandbox_exec: exec,
  agent_request: request,
  agent_wait: wait,
  barrier_arrive: arrive,
  fs_read: read,
  audit_list: summarize,
  org_audit_list: summarize,
  template_build: build,
  computer,
  ...SMALL,
  sandbox_snapshot: once,
  sandbox_fork: once,
  sandbox_rollback: once,
  sandbox_hibernate: once,
  sandbox_resume: once,
  room_checkpoint: once,
  room_fork: once,
  room_restore: once,
};

/** The default is the caller's own organization. */
const DEFAULTS: Arguments = { org_id: "self" };

export async function carryOut(call: ToolCall): Promise<ToolAnswer> {
  const ownWay = OWN_WAYS[call.tool.name];
  if (ownWay) {
    const checked = call.check();
    return checked.kind === "problem" ? answerOf(checked) : await ownWay(call, checked.input as never);
  }
  const reply = await call.pass("org_id" in call.tool.input.properties ? DEFAULTS : {});
  if (reply.kind === "late") return stillUnderWay(call);
  return reply.kind === "done" ? await fitting(call, reply.body) : answerOf(reply);
}

/** Re-reads a list that is too long with a limit that fits, so that its cursor is correct. */
async function fitting(call: ToolCall, body: Arguments): Promise<ToolAnswer> {
  const { items } = body;
  const isPaged = "limit" in call.tool.input.properties && "cursor" in call.tool.input.properties;
  const size = sizeOf(body);
  if (!isPaged || call.given.limit !== undefined || !Array.isArray(items) || size <= MAX_RESULT) {
    return { ok: true, result: body };
  }
  const limit = Math.max(1, Math.floor((items.length * MAX_RESULT * 0.8) / size));
  const reply = await call.pass({ limit });
  return reply.kind === "late" ? stillUnderWay(call) : answerOf(reply);
}
