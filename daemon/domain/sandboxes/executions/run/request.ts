/** Converts a caller's request into the guest's: the command, its name, and the fingerprint that identifies a retry. */
import { createHash } from "node:crypto";
import { NO_TIMEOUT_MS } from "../../../../../shared/agent-protocol/messages.ts";
import type { InputOf } from "../../../../../shared/api/contract.ts";
import { DEFAULT_TIMEOUT_MS, type executionStart } from "../../../../../shared/api/executions.ts";
import { newId } from "../../../../../shared/ids.ts";
import { TRACEPARENT_VARIABLE, type TraceContext, writeTraceparent } from "../../../../../shared/traceparent.ts";
import type { CallEffects } from "../../../../core/call/call-effects.ts";
import type { startInGuest } from "../../../../host/guest-link/exec.ts";
import type { CommandInput } from "./rules.ts";
import type { Stdin } from "./stdin.ts";

/** Ready to be sent repeatedly: the guest starts it once. */
export interface CommandRequest {
  start: Parameters<typeof startInGuest>[1];
  /** All of standard input, if the caller sent it with the request. */
  stdin: Uint8Array | null;
  /** Whether no further input follows. */
  stdin_ends: boolean;
}

/** Data of the host that is stored with an execution, and read back after a restart. */
interface Tag {
  output_to?: string;
}

/** Data that accompanies a command. */
interface Along {
  trace: TraceContext | null;
  stdin: Stdin | null;
}

const NOTHING: Along = { trace: null, stdin: null };

/** If the call's work has a name, its execution gets that name: a retry of the call finds the same execution. */
type NamedWork = Partial<Pick<CallEffects, "ulid">>;

/** Request of an awaited command: its standard input is the data in the call, or empty. */
export function requestOf(input: CommandInput, work: NamedWork, along: Along = NOTHING): CommandRequest {
  const request = makeRequest(input, false, work, along, DEFAULT_TIMEOUT_MS);
  // A caller whose wait may end before the command needs the name afterwards.
  return input.wait_ms === undefined ? request : { ...request, start: { ...request.start, generated: false } };
}

/** Request of a background execution, by default without a time limit; standard input stays open unless the call contained all of it. */
export function backgroundRequestOf(
  input: InputOf<typeof executionStart>,
  work: NamedWork,
  along: Along,
): CommandRequest {
  return makeRequest(input, input.stdin_open ?? along.stdin === null, work, along, 0);
}

function makeRequest(
  input: InputOf<typeof executionStart>,
  stdinStaysOpen: boolean,
  { ulid }: NamedWork,
  { trace, stdin }: Along,
  defaultTimeoutMs: number,
): CommandRequest {
  const timeout_ms = input.timeout_ms ?? defaultTimeoutMs;
  const tag: Tag = input.output_to === undefined ? {} : { output_to: input.output_to };
  return {
    start: {
      exec_id: input.exec_id ?? newId("exe", ulid),
      fingerprint: fingerprintOf(input, stdin),
      argv: input.argv ?? ["/bin/sh", "-c", input.command ?? ""],
      cwd: input.cwd ?? null,
      // Variables set by the caller take precedence.
      env: { ...(trace ? { [TRACEPARENT_VARIABLE]: writeTraceparent(trace) } : {}), ...input.env },
      user: input.user ?? null,
      timeout_ms: timeout_ms === 0 ? NO_TIMEOUT_MS : timeout_ms,
      unlimited: timeout_ms === 0,
      stdin: stdin !== null || stdinStaysOpen,
      tag: JSON.stringify(tag),
      generated: input.exec_id === undefined && ulid === undefined,
    },
    stdin: stdin?.bytes ?? null,
    stdin_ends: !stdinStaysOpen,
  };
}

/** The drive directory in an execution's tag. The tag comes from the guest and is untrusted. */
export function outputToOf(tag: string): string | null {
  try {
    const { output_to } = JSON.parse(tag) as Tag;
    return typeof output_to === "string" ? output_to : null;
  } catch {
    return null;
  }
}

/** Equal for all requests with equal content, in any order and spelling. */
function fingerprintOf(input: InputOf<typeof executionStart>, stdin: Stdin | null): string {
  const { argv, command, cwd, env, user, timeout_ms, max_output_bytes, output_to, stdin_open } = input;
  const normalized = {
    ...{ argv, command, cwd, user, timeout_ms, max_output_bytes, output_to, stdin_open },
    env: Object.entries(env ?? {}).sort(([one], [other]) => (one < other ? -1 : 1)),
    stdin: stdin?.sha256 ?? null,
  };
  return createHash("sha256").update(JSON.stringify(normalized)).digest("hex");
}
