/** template_build: starts a build with the operation of that name, which continues after the tool's time limit, and follows it in pages. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { argumentsOf } from "../../../../shared/api/mcp/tool.ts";
import { MAX_TOOL_WAIT_MS } from "../../../../shared/api/mcp/tools.ts";
import { templateBuildGet, templateBuildStream, templateCreate } from "../../../../shared/api/template-builds.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import { answerOf, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Refused, ToolCall } from "../call.ts";

interface Input extends Partial<InputOf<typeof templateCreate>> {
  template_id: string;
  build_id?: string;
  after?: number;
  wait_ms?: number;
  idempotency_key?: string;
}

interface BuildLines {
  lines: string[];
  after: number;
}

const ORDER = argumentsOf(templateCreate);
/** Limit of log lines, of which the last are shown: a model pays for each. */
const MAX_LINES = 40;

export async function build(call: ToolCall, input: Input): Promise<ToolAnswer> {
  const { template_id, build_id, after = -1, wait_ms = MAX_TOOL_WAIT_MS } = input;
  if (build_id !== undefined) return await follow(call, { template_id, build_id }, after, wait_ms);
  const order = Object.fromEntries(
    Object.entries(input).filter(([name]) => name in ORDER || name === "idempotency_key"),
  );
  const started = await call.ask(templateCreate, order);
  if (started.kind === "late") return stillUnderWay(call);
  if (started.kind === "problem") return answerOf(started);
  const path = { template_id, build_id: String(started.body.build_id) };
  const followed = await follow(call, path, -1, wait_ms);
  // The build continues, whether or not its caller may read it.
  const next = { tool: "template_build", arguments: { ...path, after: -1 } };
  if (!followed.ok) return { ok: true, result: { ...started.body, told: [], next } };
  const { warnings } = started.body;
  return { ok: true, result: { ...followed.result, ...(warnings !== undefined && { warnings }) } };
}

async function follow(
  call: ToolCall,
  path: { template_id: string; build_id: string },
  after: number,
  waitMs: number,
): Promise<ToolAnswer> {
  const progress = await readTold(call, path, after, call.waitMs(waitMs));
  if ("problem" in progress) return answerOf(progress);
  const reply = await call.ask(templateBuildGet, path);
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const next = { tool: "template_build", arguments: { ...path, after: progress.after } };
  const isOver = reply.body.finished_at !== null && progress.after >= Number(reply.body.last_seq);
  return { ok: true, result: { ...reply.body, told: progress.lines, ...(isOver ? {} : { next }) } };
}

async function readTold(call: ToolCall, path: object, after: number, waitMs: number): Promise<BuildLines | Refused> {
  const progress: BuildLines = { lines: [], after };
  let isOver = false;
  const reply = await call.ask(templateBuildStream, { ...path, after, follow: waitMs > 0 });
  if (reply.kind === "problem") return reply;
  const stream = reply.kind === "done" ? reply.done.events : undefined;
  if (!stream) return progress;
  const timer = startTimer(() => stream.cancel(), waitMs > 0 ? waitMs : call.leftMs);
  try {
    for await (const events of stream.events) {
      for (const { data, data_b64 } of events) {
        const { seq, type } = data as { seq?: number; type: string };
        if (seq !== undefined) progress.after = seq;
        if (type === "stdout" && data_b64) progress.lines.push(new TextDecoder().decode(data_b64).trimEnd());
        if (progress.lines.length > MAX_LINES) progress.lines.shift();
        isOver ||= type === "exit";
      }
      if (isOver) break;
    }
  } finally {
    stopTimer(timer);
    stream.cancel();
  }
  return progress;
}
