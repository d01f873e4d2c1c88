/** Owns the span of a command: from the call that began it until its end, also where nobody waits for that. */
import type { ExecState } from "../../../../shared/agent-protocol/messages.ts";
import type { KeyCall } from "../../../core/operation.ts";
import type { Span, Traces } from "../../../core/traces.ts";
import type { CommandInput } from "../../executions/rules.ts";
import type { SandboxRow } from "../table.ts";

/** A word that is nobody's secret: arguments may be. */
const PROGRAM = /^[\w./+-]{1,64}$/;

export function commandSpan(traces: Traces, { trace }: KeyCall, { argv, command }: CommandInput): Span {
  if (trace.context === null) return traces.begin(null, { name: "command" });
  const word = argv?.[0] ?? command?.trimStart().split(/\s/, 1)[0] ?? "";
  return traces.begin(trace.context, { name: PROGRAM.test(word) ? `command ${word.split("/").at(-1)}` : "command" });
}

type Ended = Pick<ExecState, "exec_id" | "exit_code" | "signal" | "timed_out"> & { duration_ms: number };

export function endSpan(span: Span, { org_id, agent_id, sandbox_id }: SandboxRow, ended: Ended): void {
  const { exec_id, exit_code, signal, timed_out, duration_ms } = ended;
  span.end({
    duration_ms,
    attributes: {
      "roomd.org_id": org_id,
      "roomd.agent_id": agent_id,
      "roomd.sandbox_id": sandbox_id,
      "roomd.exec_id": exec_id,
      "process.exit.code": exit_code,
      "roomd.signal": signal,
      "roomd.timed_out": timed_out,
    },
    problem: timed_out ? "timed_out" : null,
  });
}
