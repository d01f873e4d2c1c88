/** Validation of a guest's reports about executions: the shape, and bounds for every part. */
import type { ExecState } from "../../../shared/agent-protocol/messages.ts";
import { MAX_EXEC_TAG_CHARACTERS } from "../../../shared/agent-protocol/messages.ts";
import { wallMs } from "../../core/clock.ts";

const MAX_LISTED = 256;
const MAX_WORDS = 64;
const MAX_TEXT_CHARACTERS = 1024;
const MAX_SIGNAL_CHARACTERS = 16;
/** Later than any year that a guest's clock may show. */
const MAX_MOMENT_MS = 8.64e15;

type Unsure = Partial<Record<keyof ExecState, unknown>>;

export function readState(value: unknown): ExecState {
  if (typeof value !== "object" || value === null) throw new Error("the guest reported no execution");
  const report = value as Unsure;
  const isRunning = report.state === "running";
  const started = moment(report.started_at_ms) ?? wallMs();
  return {
    exec_id: text(report.exec_id, MAX_TEXT_CHARACTERS),
    number: count(report.number),
    state: isRunning ? "running" : "exited",
    argv: words(report.argv),
    cwd: text(report.cwd, MAX_TEXT_CHARACTERS),
    user: text(report.user, MAX_TEXT_CHARACTERS),
    pid: Number.isSafeInteger(report.pid) ? (report.pid as number) : null,
    timeout_ms: count(report.timeout_ms),
    exit_code: Number.isSafeInteger(report.exit_code) ? (report.exit_code as number) : null,
    signal: report.signal === null || report.signal === undefined ? null : text(report.signal, MAX_SIGNAL_CHARACTERS),
    timed_out: report.timed_out === true,
    ...(report.oom === true && { oom: true }),
    stdout_bytes: count(report.stdout_bytes),
    stderr_bytes: count(report.stderr_bytes),
    oldest_seq: count(report.oldest_seq),
    last_seq: count(report.last_seq),
    stdin_bytes: count(report.stdin_bytes),
    stdin_open: report.stdin_open === true,
    started_at_ms: started,
    finished_at_ms: isRunning ? null : (moment(report.finished_at_ms) ?? started),
    tag: text(report.tag, MAX_EXEC_TAG_CHARACTERS),
    note: text(report.note, MAX_EXEC_TAG_CHARACTERS),
  };
}

export function readReport(value: unknown): ExecState {
  return readState((value as { execution?: unknown } | null)?.execution);
}

export function readList(value: unknown): ExecState[] {
  const { executions } = (value ?? {}) as { executions?: unknown };
  if (!Array.isArray(executions)) throw new Error("the guest reported no list of executions");
  return executions.slice(0, MAX_LISTED).map(readState);
}

function text(value: unknown, most: number): string {
  return typeof value === "string" ? value.slice(0, most) : "";
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
}

function moment(value: unknown): number | null {
  return typeof value === "number" && Math.abs(value) < MAX_MOMENT_MS ? value : null;
}

function words(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, MAX_WORDS).map((word) => text(word, MAX_TEXT_CHARACTERS)) : [];
}
