/** The API's view of an execution, and the note that the guest stores with it. */
import type { ExecState } from "../../../../../shared/agent-protocol/messages.ts";
import { type ExecutionRecord, MAX_TIMEOUT_MS } from "../../../../../shared/api/executions.ts";
import { at } from "../../../../core/clock.ts";
import { outputToOf } from "./request.ts";

type SavedOutput = NonNullable<ExecutionRecord["output"]>;

/** The note comes from the guest, which may have written anything into it: malformed content is omitted. */
export function toExecutionRecord(state: ExecState): ExecutionRecord {
  const { number: _, started_at_ms, finished_at_ms, tag, note, ...shown } = state;
  return {
    ...shown,
    timeout_ms: timeLimitOf(state),
    started_at: at(started_at_ms),
    finished_at: finished_at_ms === null ? null : at(finished_at_ms),
    duration_ms: finished_at_ms === null ? null : Math.max(0, Math.round(finished_at_ms - started_at_ms)),
    output: savedOf(outputToOf(tag), note),
  };
}

/** The time limit of an execution; null: no limit. A guest may report any number: a value that no call can request counts as null. */
export function timeLimitOf({ timeout_ms }: Pick<ExecState, "timeout_ms">): number | null {
  return timeout_ms > MAX_TIMEOUT_MS ? null : timeout_ms;
}

/** The result of saving, in the format stored in the guest. */
export function noteOf(output: SavedOutput): string {
  return JSON.stringify({ stdout: output.stdout, stderr: output.stderr, error_code: output.error_code });
}

export function savedOf(path: string | null, note: string): SavedOutput | null {
  if (path === null) return null;
  const known = readNote(note);
  if (!known) return { path, state: "saving", stdout: null, stderr: null, error_code: null };
  const { stdout, stderr, error_code } = known;
  const saved = stdout !== null && stderr !== null;
  return {
    path,
    state: saved ? "saved" : "failed",
    stdout,
    stderr,
    error_code: saved ? null : (error_code ?? "internal"),
  };
}

type Note = Pick<SavedOutput, "stdout" | "stderr" | "error_code">;

function readNote(note: string): Note | null {
  try {
    const { stdout, stderr, error_code } = JSON.parse(note) as Partial<Record<keyof Note, unknown>>;
    return {
      stdout: readFile(stdout),
      stderr: readFile(stderr),
      error_code: typeof error_code === "string" ? error_code.slice(0, 64) : null,
    };
  } catch {
    return null;
  }
}

function readFile(value: unknown): Note["stdout"] {
  if (typeof value !== "object" || value === null) return null;
  const { path, size_bytes, sha256 } = value as Partial<Record<string, unknown>>;
  if (typeof path !== "string" || !Number.isSafeInteger(size_bytes) || typeof sha256 !== "string") return null;
  return { path, size_bytes: size_bytes as number, sha256: sha256.slice(0, 64) };
}
