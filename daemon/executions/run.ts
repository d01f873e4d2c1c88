/** Owns running one command for a caller: what may be asked, and how its outcome is told. */

import { StreamError } from "../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import type { InputOf, OutputOf } from "../../shared/api/contract.ts";
import {
  DEFAULT_OUTPUT_BYTES,
  DEFAULT_TIMEOUT_MS,
  MAX_LIVE_EXECUTIONS,
  MAX_STDIN_BYTES,
  type sandboxExec,
} from "../../shared/api/executions.ts";
import { newId } from "../../shared/ids.ts";
import { at } from "../core/clock.ts";
import type { RuleBreak } from "../core/operation.ts";
import { ServiceError } from "../core/service-error.ts";
import { textOf } from "../core/text.ts";
import { ExecLostError, execInGuest } from "../host/guest-link/exec.ts";
import type { GuestLink } from "../host/guest-link/handshake.ts";
import { Capture } from "./capture.ts";
import { environmentRules } from "./environment.ts";

type Input = InputOf<typeof sandboxExec>;

/** Fits a frame to the guest with its environment; Linux takes a single argument of 128 KiB at most. */
const MAX_COMMAND_BYTES = 2 * 1024 * 1024;

/** Most bytes of each stream that `output_to` saves. */
const SAVED_BYTES = 16 * 1024 * 1024;

/** What is wrong with a command beyond its fields' shapes. */
export function execRules(input: Partial<Input>): RuleBreak[] {
  const broken = environmentRules(input.env);
  const invalid = (field: string, message: string) => broken.push({ field, code: "invalid_command", message });
  if (input.argv !== undefined && input.command !== undefined)
    invalid("command", "Send either argv or command, not both.");
  if (input.argv === undefined && input.command === undefined) invalid("argv", "Send argv or command.");
  for (const [index, word] of (input.argv ?? []).entries()) {
    if (word.includes("\0")) invalid(`argv[${index}]`, "An argument has a NUL character.");
  }
  const words = input.argv ?? [input.command ?? ""];
  if (words.reduce((bytes, word) => bytes + Buffer.byteLength(word), 0) > MAX_COMMAND_BYTES) {
    const field = input.argv === undefined ? "command" : "argv";
    invalid(field, `${field} may have at most ${MAX_COMMAND_BYTES} bytes.`);
  }
  if (input.argv?.[0] === "") invalid("argv[0]", "The command is empty.");
  if (input.command?.includes("\0")) invalid("command", "The command has a NUL character.");
  if (input.cwd !== undefined && (!input.cwd.startsWith("/") || input.cwd.includes("\0"))) {
    broken.push({ field: "cwd", code: "pattern", message: "cwd must be an absolute path." });
  }
  broken.push(...stdinRules(input));
  return broken;
}

function stdinRules({ stdin, stdin_b64 }: Partial<Input>): RuleBreak[] {
  if (stdin !== undefined && stdin_b64 !== undefined) {
    return [{ field: "stdin_b64", code: "conflicting_fields", message: "Send either stdin or stdin_b64, not both." }];
  }
  if (stdin_b64 !== undefined && !isBase64(stdin_b64)) {
    return [{ field: "stdin_b64", code: "invalid_base64", message: "stdin_b64 is not base64." }];
  }
  const bytes = stdin === undefined ? Buffer.byteLength(stdin_b64 ?? "", "base64") : Buffer.byteLength(stdin);
  if (bytes <= MAX_STDIN_BYTES) return [];
  const field = stdin === undefined ? "stdin_b64" : "stdin";
  return [{ field, code: "length", message: `Standard input may have at most ${MAX_STDIN_BYTES} bytes.` }];
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

interface Finished {
  body: OutputOf<typeof sandboxExec>;
  /** Full streams to be saved, when the caller asked for it. */
  save: { path: string; streams: { stdout: Uint8Array; stderr: Uint8Array } } | null;
}

export interface Executions {
  /** Runs a command to its end. A caller who goes away does not end it. */
  run(link: GuestLink, sandboxId: string, input: Input): Promise<Finished>;
}

export function makeExecutions(): Executions {
  const live = new Map<string, Set<string>>();
  return {
    run: async (link, sandboxId, input) => {
      const execId = input.exec_id ?? newId("exe");
      const leave = enter(live, sandboxId, execId);
      try {
        return await runCommand(link, execId, input);
      } finally {
        leave();
      }
    },
  };
}

async function runCommand(link: GuestLink, execId: string, input: Input): Promise<Finished> {
  try {
    const limit = input.max_output_bytes ?? DEFAULT_OUTPUT_BYTES;
    const kept = input.output_to === undefined ? limit : Math.max(limit, SAVED_BYTES);
    const stdout = new Capture(kept);
    const stderr = new Capture(kept);
    const stdin = stdinOf(input);
    const result = await execInGuest(
      link,
      {
        exec_id: execId,
        argv: input.argv ?? ["/bin/sh", "-c", input.command ?? ""],
        cwd: input.cwd ?? null,
        env: input.env ?? {},
        user: input.user ?? null,
        timeout_ms: input.timeout_ms ?? DEFAULT_TIMEOUT_MS,
        stdin: stdin !== null,
      },
      { stdin, stdout: (bytes) => stdout.take(bytes), stderr: (bytes) => stderr.take(bytes) },
    );
    const shown = { stdout: shownOf(stdout, limit), stderr: shownOf(stderr, limit) };
    return {
      body: {
        exec_id: execId,
        state: "exited",
        exit_code: result.timed_out ? null : result.exit_code,
        signal: result.timed_out ? null : result.signal,
        timed_out: result.timed_out,
        stdout: textOf(shown.stdout),
        stderr: textOf(shown.stderr),
        stdout_b64: shown.stdout.toString("base64"),
        stderr_b64: shown.stderr.toString("base64"),
        stdout_bytes: stdout.totalBytes,
        stderr_bytes: stderr.totalBytes,
        stdout_truncated: stdout.totalBytes > shown.stdout.byteLength,
        stderr_truncated: stderr.totalBytes > shown.stderr.byteLength,
        started_at: at(result.started_at_ms),
        finished_at: at(result.finished_at_ms),
        duration_ms: Math.max(0, Math.round(result.finished_at_ms - result.started_at_ms)),
      },
      save:
        input.output_to === undefined
          ? null
          : { path: input.output_to, streams: { stdout: stdout.bytes(), stderr: stderr.bytes() } },
    };
  } catch (error) {
    throw asServiceError(error, input);
  }
}

function shownOf(capture: Capture, limit: number): Buffer {
  return capture.bytes().subarray(0, limit);
}

function stdinOf({ stdin, stdin_b64 }: Input): Uint8Array | null {
  if (stdin !== undefined) return Buffer.from(stdin);
  return stdin_b64 === undefined ? null : Buffer.from(stdin_b64, "base64");
}

/** Counts the live commands of a sandbox, and keeps two from having one name. */
function enter(live: Map<string, Set<string>>, sandboxId: string, execId: string): () => void {
  const own = live.get(sandboxId) ?? new Set<string>();
  if (own.has(execId)) throw new ServiceError("exec_id_in_use", { detail: `exec_id ${execId} is running.` });
  if (own.size >= MAX_LIVE_EXECUTIONS) {
    throw new ServiceError("too_many_executions", {
      detail: `The sandbox has ${MAX_LIVE_EXECUTIONS} live executions, which is the most.`,
      retryAfterSeconds: 1,
    });
  }
  live.set(sandboxId, own.add(execId));
  return () => {
    own.delete(execId);
    if (own.size === 0) live.delete(sandboxId);
  };
}

function asServiceError(error: unknown, input: Input): unknown {
  if (error instanceof StreamError) {
    if (error.code === StreamErrorCode.cwd_not_found) {
      const message = `${input.cwd ?? "The home directory"} does not exist in the sandbox.`;
      return new ServiceError("cwd_not_found", {
        detail: message,
        errors: [{ field: "cwd", code: "cwd_not_found", message }],
      });
    }
    if (error.code === StreamErrorCode.user_not_found) {
      const message = `The sandbox has no user ${input.user}.`;
      return new ServiceError("validation_failed", {
        detail: message,
        errors: [{ field: "user", code: "not_found", message }],
      });
    }
    if (error.code === StreamErrorCode.too_many_streams)
      return new ServiceError("too_many_executions", { retryAfterSeconds: 1 });
    if (error.code === StreamErrorCode.drive_unavailable) {
      return new ServiceError("guest_unreachable", {
        detail:
          "The command needs /mnt/drive, which does not answer in this sandbox now; commands that do without it run.",
        details: { started: false },
        cause: error,
      });
    }
    return new ServiceError("guest_unreachable", { details: { started: false }, cause: error });
  }
  if (error instanceof ExecLostError) {
    return new ServiceError("guest_unreachable", {
      detail: "The guest stopped answering while the command was running.",
      details: { started: error.started ? true : "unknown" },
      cause: error,
    });
  }
  return error;
}
