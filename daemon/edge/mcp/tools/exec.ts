/**
 * Owns sandbox_exec: a command is run by the operation of that name, which goes on when the tool's time is over; then, and for
 * whoever comes again by its exec_id, its output is read in pages.
 */
import type { InputOf } from "../../../../shared/api/contract.ts";
import {
  DEFAULT_OUTPUT_BYTES,
  type ExecutionRecord,
  executionGet,
  executionSignal,
  executionStart,
  executionStdin,
  sandboxExec,
} from "../../../../shared/api/executions.ts";
import { sandboxGet } from "../../../../shared/api/sandboxes.ts";
import { argumentsOf } from "../../../../shared/api/tool.ts";
import { MAX_TOOL_WAIT_MS } from "../../../../shared/api/tools.ts";
import { textOf } from "../../../core/text.ts";
import { type Answer, answerOf, type NextCall, stillUnderWay } from "../answer.ts";
import type { Arguments, Refused, Reply, ToolCall } from "../call.ts";
import { type Page, readPage } from "./output-page.ts";

interface Input extends Omit<InputOf<typeof sandboxExec>, "argv_json" | "env_json"> {
  background?: boolean;
  wait_ms?: number;
  after?: number;
  after_bytes?: number;
  signal?: string;
  eof?: boolean;
  idempotency_key?: string;
}

/** One that is known by its name. */
type Named = Input & { exec_id: string };

const COMMAND = argumentsOf(sandboxExec);
const START = { after: 0, after_bytes: 0 };

export async function exec(call: ToolCall, input: Input): Promise<Answer> {
  const { exec_id, signal, after } = input;
  const isAbout = !isCommand(input) || signal !== undefined || after !== undefined;
  if (exec_id !== undefined && isAbout) return await goOn(call, { ...input, exec_id });
  const newName = call.nameOf("exe", input.idempotency_key, [input.room_id, input.sandbox]);
  return await start(call, { ...input, exec_id: exec_id ?? newName });
}

async function start(call: ToolCall, input: Named): Promise<Answer> {
  const first = await begin(call, input);
  const reply = isStarting(first) ? await beginWhenReady(call, input, first) : first;
  if (reply.kind === "problem") return isStarting(reply) ? sandboxStarting(call) : answerOf(reply);
  if (reply.kind === "late") return await underWay(call, input);
  if (input.background) return answerWith(input, reply.body as unknown as ExecutionRecord, NOTHING);
  const { stdout_truncated, stderr_truncated } = reply.body;
  return stdout_truncated || stderr_truncated ? await firstPage(call, input, reply.body) : answerOf(reply);
}

/** Has outlasted its call: what there is so far. */
async function underWay(call: ToolCall, input: Named): Promise<Answer> {
  const look = { ...input, background: true, eof: false };
  const answer = await goOn(call, look);
  if (answer.ok) return answer;
  // The guest has yet to begin it.
  if (answer.problem.code === "execution_not_found") {
    return nothingYet("running", { exec_id: input.exec_id }, nextOf(input, NOTHING));
  }
  if (answer.problem.code !== "history_gone") return answer;
  // It has written more than is kept already: what is left begins later.
  const record = await call.ask(executionGet, pathOf(input));
  return record.kind === "done" ? await goOn(call, { ...look, after: Number(record.body.oldest_seq) - 1 }) : answer;
}

async function begin(call: ToolCall, input: Named): Promise<Reply> {
  const command = Object.fromEntries(Object.entries(input).filter(([name]) => name in COMMAND && name !== "wait_ms"));
  if (input.background) return await call.ask(executionStart, command);
  return await call.ask(sandboxExec, command, call.waitMs(input.wait_ms ?? MAX_TOOL_WAIT_MS));
}

/** Follows a run that there is, after reaching it with what came along. */
async function goOn(call: ToolCall, input: Named): Promise<Answer> {
  const { signal, eof, after = 0, after_bytes = 0, background, wait_ms = MAX_TOOL_WAIT_MS } = input;
  const path = pathOf(input);
  // Beside a command, standard input is what that began with.
  const data_b64 = isCommand(input) ? undefined : stdinOf(input);
  if (signal !== undefined) {
    const reached = await call.ask(executionSignal, { ...path, signal });
    if (reached.kind === "problem") return answerOf(reached);
  }
  if (data_b64 !== undefined || eof) {
    const fed = await call.ask(executionStdin, { ...path, data_b64, eof });
    if (fed.kind === "problem") return answerOf(fed);
  }
  const waitMs = background ? 0 : call.waitMs(wait_ms);
  const place = { path, after, after_bytes, most: mostOf(input) };
  const page = await readPage(call, { ...place, waitMs });
  if (page.kind === "problem") return answerOf(page);
  const reply = await call.ask(executionGet, path);
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const record = reply.body as unknown as ExecutionRecord;
  if (record.state !== "exited" || page.ended || page.full) return answerWith(input, record, page);
  // It has ended since the page was read: whoever reads that it has ended shall have its last words.
  const whole = await readPage(call, { ...place, waitMs: 0 });
  return whole.kind === "problem" ? answerOf(whole) : answerWith(input, record, whole);
}

/** The command has ended, with more output than the answer holds: the rest is told by the pages that follow. */
async function firstPage(call: ToolCall, input: Named, body: Arguments): Promise<Answer> {
  const page = await readPage(call, { path: pathOf(input), ...START, most: mostOf(input), waitMs: 0 });
  // Its beginning may be gone already, where it has written more than is kept.
  if (page.kind === "problem" || page.ended) return { ok: true, result: body };
  return { ok: true, result: { ...body, ...outputOf(page), next: nextOf(input, page) } };
}

async function beginWhenReady(call: ToolCall, input: Named, refused: Refused): Promise<Reply> {
  const { room_id, sandbox } = input;
  const wait_ms = call.waitMs(input.background ? 0 : (input.wait_ms ?? MAX_TOOL_WAIT_MS));
  const looked = await call.ask(sandboxGet, { room_id, sandbox, wait_ms });
  return looked.kind === "done" && looked.body.state === "running" ? await begin(call, input) : refused;
}

function isStarting(reply: Reply): reply is Refused {
  if (reply.kind !== "problem" || reply.problem.code !== "invalid_state") return false;
  return ["creating", "starting"].includes(String(reply.problem.details.state));
}

const NOTHING: Page = {
  kind: "page",
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  place: START,
  full: false,
  ended: false,
};

function answerWith(input: Named, record: ExecutionRecord, page: Page): Answer {
  const { exec_id, state, exit_code, signal, timed_out, stdout_bytes, stderr_bytes } = record;
  const { started_at, finished_at, duration_ms, output, oom } = record;
  const isOver = state === "exited" && page.ended;
  const result = {
    ...{ exec_id, state, exit_code: timed_out ? null : exit_code, signal: timed_out ? null : signal, timed_out },
    ...(oom && { oom }),
    ...outputOf(page),
    ...{ stdout_bytes, stderr_bytes, started_at, finished_at, duration_ms, output },
    ...(isOver ? {} : { next: nextOf(input, page) }),
  };
  return { ok: true, result };
}

function outputOf({ stdout, stderr, full }: Page): Arguments {
  return {
    stdout: textOf(stdout),
    stderr: textOf(stderr),
    stdout_b64: stdout.toString("base64"),
    stderr_b64: stderr.toString("base64"),
    stdout_truncated: full,
    stderr_truncated: full,
  };
}

function nextOf(input: Named, { place }: Page): NextCall {
  const { max_output_bytes, wait_ms } = input;
  const kept = {
    ...(max_output_bytes === undefined ? {} : { max_output_bytes }),
    ...(wait_ms ? { wait_ms } : {}),
  };
  const { after, after_bytes } = place;
  const inPiece = after_bytes === 0 ? {} : { after_bytes };
  return { tool: "sandbox_exec", arguments: { ...pathOf(input), after, ...inPiece, ...kept } };
}

function nothingYet(state: "starting" | "running", { exec_id }: { exec_id: string | null }, next: NextCall): Answer {
  const nothing = { exec_id, exit_code: null, signal: null, timed_out: false, stdout_bytes: 0, stderr_bytes: 0 };
  const times = { started_at: null, finished_at: null, duration_ms: null, output: null };
  return { ok: true, result: { state, ...nothing, ...outputOf(NOTHING), ...times, next } };
}

/** Nothing has been run yet: the same call waits on. */
function sandboxStarting(call: ToolCall): Answer {
  return nothingYet("starting", { exec_id: null }, { tool: "sandbox_exec", arguments: call.given });
}

const isCommand = ({ argv, command }: Input) => argv !== undefined || command !== undefined;
const pathOf = ({ room_id, sandbox, exec_id }: Named) => ({ room_id, sandbox, exec_id });
const mostOf = ({ max_output_bytes }: Input) => max_output_bytes ?? DEFAULT_OUTPUT_BYTES;

function stdinOf({ stdin, stdin_b64 }: Input): string | undefined {
  return stdin === undefined ? stdin_b64 : Buffer.from(stdin).toString("base64");
}
