/**
 * The list of an agent's commands: running ones, those that the sandbox retains, and those that only the audit has. A command is identified
 * by its exec_id; a refused call has none, and is a separate row.
 */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { ExecutionRecord } from "../../../shared/api/executions.ts";
import type { RunningCommand } from "../../../shared/api/overview/live.ts";
import { commandText } from "../../../shared/shell.ts";

export interface Run {
  /** The execution's exec_id; for a refused call, its audit_id. */
  id: string;
  command: string;
  /** refused: the command never ran. unknown: it started, and no end was recorded. */
  state: "running" | "ended" | "refused" | "unknown";
  /** Whether the sandbox still stores the command's output. */
  isKept: boolean;
  startedAt: string;
  tookMs: number | null;
  exitCode: number | null;
  signal: string | null;
  hasTimedOut: boolean;
  outBytes: number | null;
  errBytes: number | null;
  errorCode: string | null;
}

export const isOfCommands = ({ event }: Pick<AuditRecord, "event">) =>
  /^exec\.(?:started|finished|killed)$/.test(event);

/** The newest first. */
export function mergeRuns(kept: readonly ExecutionRecord[], records: readonly AuditRecord[]): Run[] {
  const runs = new Map<string, Run>();
  // The record of an end has more details than that of a start, and the sandbox's own more than both.
  const ends = records.filter(({ event }) => event === "exec.finished");
  const beginnings = records.filter(({ event }) => event === "exec.started");
  for (const record of [...beginnings, ...ends]) {
    const run = runOf(record);
    const before = runs.get(run.id);
    runs.set(run.id, before ? { ...run, command: run.command || before.command, startedAt: before.startedAt } : run);
  }
  for (const execution of kept) runs.set(execution.exec_id, ofSandbox(execution));
  return [...runs.values()].sort((one, other) => Date.parse(other.startedAt) - Date.parse(one.startedAt));
}

/** Merges the commands that are running now into the runs; running ones come first. */
export function withRunning(runs: readonly Run[], running: readonly RunningCommand[]): Run[] {
  const known = new Map(runs.map((run) => [run.id, run]));
  const now = running.map(({ exec_id, command, since }): Run => {
    const run = known.get(exec_id);
    return run ? { ...run, state: "running" } : { ...NEW, id: exec_id, command, startedAt: since };
  });
  const ids = new Set(now.map(({ id }) => id));
  return [...now.toReversed(), ...runs.filter(({ id }) => !ids.has(id))];
}

const NEW = {
  state: "running",
  isKept: true,
  tookMs: null,
  exitCode: null,
  signal: null,
  hasTimedOut: false,
  outBytes: null,
  errBytes: null,
  errorCode: null,
} as const;

function ofSandbox(execution: ExecutionRecord): Run {
  return {
    id: execution.exec_id,
    command: commandText(execution.argv),
    state: execution.state === "running" ? "running" : "ended",
    isKept: true,
    startedAt: execution.started_at,
    tookMs: execution.duration_ms,
    exitCode: execution.exit_code,
    signal: execution.signal,
    hasTimedOut: execution.timed_out,
    outBytes: execution.stdout_bytes,
    errBytes: execution.stderr_bytes,
    errorCode: null,
  };
}

function runOf({ event, audit_id, at, status, outcome, error_code, duration_ms, details }: AuditRecord): Run {
  const id = textOf(details.exec_id);
  const hasEnded = event === "exec.finished" && outcome === "success";
  // A call's record has the call's start time; a record without a call is written at the command's end.
  const startMs = Date.parse(at) - (status === null && event === "exec.finished" ? (duration_ms ?? 0) : 0);
  return {
    id: id ?? audit_id,
    command: commandOf(details),
    state: hasEnded ? "ended" : outcome === "success" || id !== null ? "unknown" : "refused",
    isKept: false,
    startedAt: new Date(startMs).toISOString(),
    tookMs: hasEnded ? duration_ms : null,
    exitCode: numberOf(details.exit_code),
    signal: textOf(details.signal),
    hasTimedOut: details.timed_out === true,
    outBytes: numberOf(details.stdout_bytes),
    errBytes: numberOf(details.stderr_bytes),
    errorCode: error_code,
  };
}

function commandOf({ command, argv, told_argv }: AuditRecord["details"]): string {
  if (typeof command === "string") return command;
  const words = argv ?? told_argv;
  return Array.isArray(words) ? commandText(words.map(String)) : "";
}

const textOf = (value: unknown) => (typeof value === "string" ? value : null);
const numberOf = (value: unknown) => (typeof value === "number" ? value : null);

/** Entries older than this may be incomplete: one of the two lists has more pages. */
export function horizonOf(pages: readonly { items: readonly AuditRecord[]; next_cursor: string | null }[]): number {
  return Math.max(
    Number.NEGATIVE_INFINITY,
    ...pages.flatMap(({ items, next_cursor }) =>
      next_cursor === null ? [] : items.slice(-1).map(({ at }) => Date.parse(at)),
    ),
  );
}
