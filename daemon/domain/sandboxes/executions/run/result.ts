/** The response about a command that a caller waited for: its outcome, or its state at the end of the wait. */
import type { ExecState } from "../../../../../shared/agent-protocol/messages.ts";
import type { OutputOf } from "../../../../../shared/api/contract.ts";
import { DEFAULT_OUTPUT_BYTES, type ExecutionRecord, type sandboxExec } from "../../../../../shared/api/executions.ts";
import { at, wallMs } from "../../../../core/clock.ts";
import { textOf } from "../../../../core/text.ts";
import { Capture } from "./capture.ts";
import type { CommandInput } from "./rules.ts";

type Result = OutputOf<typeof sandboxExec>;

/** Both streams, by their channels. */
export type Captures = Record<1 | 2, Capture>;

export function capturesFor({ max_output_bytes: limit = DEFAULT_OUTPUT_BYTES }: CommandInput): Captures {
  return { 1: new Capture(limit), 2: new Capture(limit) };
}

/** Result of a command that has ended; `state` is its last state. */
export function exitedResult(
  exec_id: string,
  state: ExecState,
  captures: Captures,
  output: ExecutionRecord["output"],
): Result {
  const finished = state.finished_at_ms ?? state.started_at_ms;
  return {
    exec_id,
    state: "exited",
    exit_code: state.timed_out ? null : state.exit_code,
    signal: state.timed_out ? null : state.signal,
    timed_out: state.timed_out,
    ...(state.oom && { oom: true }),
    ...shown(captures),
    started_at: at(state.started_at_ms),
    finished_at: at(finished),
    duration_ms: Math.max(0, Math.round(finished - state.started_at_ms)),
    output,
  };
}

/** Result of a command that is still running, with its output up to the piece `last_seq`. */
export function runningResult(
  { exec_id, started_at_ms }: ExecState,
  captures: Captures,
  last_seq: number,
  output: ExecutionRecord["output"],
): Result {
  return {
    ...{ exec_id, state: "running", exit_code: null, signal: null, timed_out: false },
    ...shown(captures),
    started_at: at(started_at_ms),
    finished_at: null,
    duration_ms: Math.max(0, Math.round(wallMs() - started_at_ms)),
    ...{ last_seq, output },
  };
}

function shown({ 1: stdout, 2: stderr }: Captures) {
  const bytes = { stdout: stdout.bytes(), stderr: stderr.bytes() };
  return {
    stdout: textOf(bytes.stdout),
    stderr: textOf(bytes.stderr),
    stdout_b64: bytes.stdout.toString("base64"),
    stderr_b64: bytes.stderr.toString("base64"),
    stdout_bytes: stdout.totalBytes,
    stderr_bytes: stderr.totalBytes,
    stdout_truncated: stdout.totalBytes > bytes.stdout.byteLength,
    stderr_truncated: stderr.totalBytes > bytes.stderr.byteLength,
  };
}
