/** Trace span of a command: from the call that started it until its end, including background executions. */
import type { ExecState } from "../../../../shared/agent-protocol/messages.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { type Span, type Traces, untold } from "../../../core/call/traces.ts";
import type { SandboxTarget } from "../find.ts";
import type { CommandInput } from "./run/rules.ts";

/** A word that cannot be a secret; arguments may be. */
const PROGRAM = /^[\w./+-]{1,64}$/;

export function commandSpan(
  traces: Traces,
  { trace }: KeyCall,
  { row, room }: Pick<SandboxTarget, "row" | "room">,
  { argv, command }: CommandInput,
): Span {
  if (!trace.isTold) return untold(trace.context);
  const word = argv?.[0] ?? command?.trimStart().split(/\s/, 1)[0] ?? "";
  return traces.begin(trace.context, {
    name: PROGRAM.test(word) ? `command ${word.split("/").at(-1)}` : "command",
    attributes: {
      "roomd.org_id": row.org_id,
      "roomd.room_id": room.room_id,
      "roomd.agent_id": row.agent_id,
      "roomd.sandbox_id": row.sandbox_id,
    },
  });
}

type EndedExecution = Pick<ExecState, "exec_id" | "exit_code" | "signal" | "timed_out"> & { duration_ms: number };

export function endSpan(span: Span, { exec_id, exit_code, signal, timed_out, duration_ms }: EndedExecution): void {
  span.end({
    duration_ms,
    attributes: {
      "roomd.exec_id": exec_id,
      "process.exit.code": exit_code,
      "roomd.signal": signal,
      "roomd.timed_out": timed_out,
    },
    problem: timed_out ? "timed_out" : (signal ?? (exit_code === 0 ? null : `exit ${exit_code}`)),
  });
}
