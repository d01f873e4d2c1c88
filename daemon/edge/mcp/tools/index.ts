/**
 * MCP tools that do more than pass their arguments to their operation. All tools are listed in shared/api/mcp/tools.ts; calls arrive in
 * ../server.ts.
 */
import { answerOf, type ToolAnswer } from "../answer.ts";
import type { Arguments, ToolCall } from "../call.ts";
import { SMALL } from "../small/index.ts";
import { summarize } from "./audit.ts";
import { arrive } from "./barrier.ts";
import { build } from "./build.ts";
import { computer } from "./computer.ts";
import { create } from "./create.ts";
import { exec } from "./exec.ts";
import { fitting } from "./fitting.ts";
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
  const defaults = "org_id" in call.tool.input.properties ? DEFAULTS : {};
  return await fitting(call, (more) => call.pass({ ...defaults, ...call.given, ...more }));
}
