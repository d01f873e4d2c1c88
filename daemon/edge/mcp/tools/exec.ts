/**
 * The tool sandbox_exec: the operation of that name runs the command, which continues after the tool's timeout; then, and for later calls
 * with its exec_id, the tool reads the output from the stream. Output is text: its beginning and end, or with max_output_bytes page by
 * page.
 */
import type { InputOf } from "../../../../shared/api/contract.ts";
import {
  type ExecutionRecord,
  executionGet,
  executionSignal,
  executionStart,
  executionStdin,
  sandboxExec,
} from "../../../../shared/api/executions.ts";
import { argumentsOf } from "../../../../shared/api/mcp/tool.ts";
import { MAX_TOOL_WAIT_MS } from "../../../../shared/api/mcp/tools.ts";
import { sandboxGet } from "../../../../shared/api/sandboxes.ts";
import { answerOf, type NextCall, stillUnderWay, type ToolAnswer } from "../answer.ts";
import type { Arguments, Refused, Reply, ToolCall } from "../call.ts";
import { type Ends, fits, HEAD_BYTES, NO_OUTPUT, TAIL_BYTES, whole } from "../output-text.ts";
import { execAnswer, type Ran } from "./exec-answer.ts";
import { readEnds } from "./output-ends.ts";
import { type OutputPosition, readPage } from "./output-page.ts";

interface Input extends Omit<InputOf<typeof sandboxExec>, "argv_json" | "env_json"> {
  background?: boolean;
  wait_ms?: number;
  after?: number;
  after_bytes?: number;
  signal?: string;
  eof?: boolean;
  idempotency_key?: string;
}

/** An execution with a known ID. */
type NamedExec = Input & { exec_id: string };

const COMMAND = argumentsOf(sandboxExec);
const START = { after: 0, after_bytes: 0 };
const SHOWN_BYTES = HEAD_BYTES + TAIL_BYTES;
/** Maximum bytes of each stream on a page of the omitted part. */
const REST_BYTES = TAIL_BYTES;

export async function exec(call: ToolCall, input: Input): Promise<ToolAnswer> {
  const { exec_id, signal, after } = input;
  const isAbout = !isCommand(input) || signal !== undefined || after !== undefined;
  if (exec_id !== undefined && isAbout) return await goOn(call, { ...input, exec_id });
  const newName = call.nameOf("exe", input.idempotency_key, [input.room_id, input.sandbox]);
  return await start(call, { ...input, exec_id: exec_id ?? newName });
}

async function start(call: ToolCall, input: NamedExec): Promise<ToolAnswer> {
  const first = await begin(call, input);
  const reply = isStarting(first) ? await beginWhenReady(call, input, first) : first;
  if (reply.kind === "problem") return isStarting(reply) ? sandboxStarting(call) : answerOf(reply);
  if (reply.kind === "late") return await underWay(call, input);
  if (input.background) {
    return answerWith(call, input, reply.body as unknown as ExecutionRecord, { ...NOTHING, next: true });
  }
  return await finished(call, input, reply.body);
}

/** The command has outlasted its call: returns the output so far. */
async function underWay(call: ToolCall, input: NamedExec): Promise<ToolAnswer> {
  const look = { ...input, background: true, eof: false };
  const answer = await goOn(call, look);
  if (answer.ok) return answer;
  // The guest has not started it yet.
  if (answer.problem.code === "execution_not_found") {
    return nothingYet(call, "running", input.exec_id, nextOf(input, START));
  }
  if (answer.problem.code !== "history_gone") return answer;
  // Output above the history's size is gone: the retained part starts later.
  const record = await call.ask(executionGet, pathOf(input));
  return record.kind === "done" ? await goOn(call, { ...look, after: Number(record.body.oldest_seq) - 1 }) : answer;
}

async function begin(call: ToolCall, input: NamedExec): Promise<Reply> {
  const command = Object.fromEntries(Object.entries(input).filter(([name]) => name in COMMAND && name !== "wait_ms"));
  if (input.background) return await call.ask(executionStart, command);
  const max_output_bytes = input.max_output_bytes ?? SHOWN_BYTES;
  return await call.ask(sandboxExec, { ...command, max_output_bytes }, call.waitMs(input.wait_ms ?? MAX_TOOL_WAIT_MS));
}

/** Follows an existing execution, after delivering the call's signal and input. */
async function goOn(call: ToolCall, input: NamedExec): Promise<ToolAnswer> {
  const { signal, eof, after = 0, after_bytes = 0, background, wait_ms = MAX_TOOL_WAIT_MS } = input;
  const path = pathOf(input);
  // Together with a command, standard input was passed at its start.
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
  const place = { after, after_bytes };
  const seen = await look(call, input, place, waitMs);
  if (seen.kind === "problem") return answerOf(seen);
  const reply = await call.ask(executionGet, path);
  if (reply.kind === "late") return stillUnderWay(call);
  if (reply.kind === "problem") return answerOf(reply);
  const record = reply.body as unknown as ExecutionRecord;
  if (record.state !== "exited" || seen.ended || seen.full) return answerWith(call, input, record, seen);
  // The command ended after the stream was read: the last output must not be missing.
  const last = await look(call, input, place, 0);
  return last.kind === "problem" ? answerOf(last) : answerWith(call, input, record, last);
}

/** The output that was read. */
interface ReadOutput extends Ends {
  kind: "seen";
  place: OutputPosition;
  /** Position of the part that is left out; null: a page leaves out nothing. */
  rest: OutputPosition | null;
  /** The page is full and more output follows. */
  full: boolean;
  ended: boolean;
}

/** Reads the output from a position on: with max_output_bytes one page, else its beginning and end. */
async function look(
  call: ToolCall,
  input: NamedExec,
  from: OutputPosition,
  waitMs: number,
): Promise<ReadOutput | Refused> {
  const { max_output_bytes: most } = input;
  const options = { path: pathOf(input), ...from, waitMs };
  if (most === undefined) {
    const ends = await readEnds(call, options);
    if (ends.kind === "problem") return ends;
    return { ...ends, kind: "seen", full: false };
  }
  const page = await readPage(call, { ...options, most });
  if (page.kind === "problem") return page;
  return { ...whole(page), kind: "seen", place: page.place, rest: null, full: page.full, ended: page.ended };
}

/** The answer for a command that ended within the call. */
async function finished(call: ToolCall, input: NamedExec, body: Arguments): Promise<ToolAnswer> {
  const { stdout_truncated, stderr_truncated } = body;
  const streams = { stdout: bytesOf(body.stdout, body.stdout_b64), stderr: bytesOf(body.stderr, body.stderr_b64) };
  const isLong = input.max_output_bytes === undefined && !fits(streams);
  const record = { ...body, state: "exited" } as unknown as ExecutionRecord;
  const left_out_bytes = record.stdout_bytes + record.stderr_bytes - streams.stdout.length - streams.stderr.length;
  const direct = { ...NOTHING, ...whole(streams), left_out_bytes, ended: true };
  if (!isLong && !stdout_truncated && !stderr_truncated) return answerWith(call, input, record, direct);
  const seen = await look(call, input, START, 0);
  // If the output is no longer retained, the answer shows the part in the response.
  return answerWith(call, input, record, seen.kind === "problem" ? direct : seen);
}

async function beginWhenReady(call: ToolCall, input: NamedExec, refused: Refused): Promise<Reply> {
  const { room_id, sandbox } = input;
  const wait_ms = call.waitMs(input.background ? 0 : (input.wait_ms ?? MAX_TOOL_WAIT_MS));
  const found = await call.ask(sandboxGet, { room_id, sandbox, wait_ms });
  return found.kind === "done" && found.body.state === "running" ? await begin(call, input) : refused;
}

function isStarting(reply: Reply): reply is Refused {
  if (reply.kind !== "problem" || reply.problem.code !== "invalid_state") return false;
  return ["creating", "starting"].includes(String(reply.problem.details.state));
}

const NOTHING: ReadOutput & { next?: boolean } = {
  ...{ kind: "seen", head: NO_OUTPUT, tail: NO_OUTPUT, left_out_bytes: 0 },
  ...{ place: START, rest: null, full: false, ended: false },
};

function answerWith(
  call: ToolCall,
  input: NamedExec,
  record: ExecutionRecord,
  seen: ReadOutput & { next?: boolean },
): ToolAnswer {
  const isOver = record.state === "exited" && seen.ended;
  const rest = seen.rest && nextOf({ ...input, max_output_bytes: input.max_output_bytes ?? REST_BYTES }, seen.rest);
  const next = isOver ? null : nextOf(input, seen.place);
  return execAnswer(call, record as Ran, { ends: seen, rest, next, bound: input.max_output_bytes === undefined });
}

function nextOf(input: NamedExec, { after, after_bytes }: OutputPosition): NextCall {
  const { max_output_bytes, wait_ms } = input;
  const kept = {
    ...(max_output_bytes === undefined ? {} : { max_output_bytes }),
    ...(wait_ms ? { wait_ms } : {}),
  };
  const inPiece = after_bytes === 0 ? {} : { after_bytes };
  return { tool: "sandbox_exec", arguments: { ...pathOf(input), after, ...inPiece, ...kept } };
}

function nothingYet(call: ToolCall, state: "starting" | "running", exec_id: string | null, next: NextCall): ToolAnswer {
  const record = { exec_id, state, exit_code: null, signal: null, timed_out: false, stdout_bytes: 0, stderr_bytes: 0 };
  return execAnswer(call, record as Ran, { ends: NOTHING, rest: null, next, bound: true });
}

/** The command was not started yet: the same call continues the wait. */
function sandboxStarting(call: ToolCall): ToolAnswer {
  return nothingYet(call, "starting", null, { tool: call.tool.name, arguments: call.given });
}

const isCommand = ({ argv, command }: Input) => argv !== undefined || command !== undefined;
const pathOf = ({ room_id, sandbox, exec_id }: NamedExec) => ({ room_id, sandbox, exec_id });

const bytesOf = (text: unknown, b64: unknown) =>
  typeof text === "string" ? Buffer.from(text) : Buffer.from(String(b64 ?? ""), "base64");

function stdinOf({ stdin, stdin_b64 }: Input): string | undefined {
  return stdin === undefined ? stdin_b64 : Buffer.from(stdin).toString("base64");
}
