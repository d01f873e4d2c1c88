/** The answer about a command: its outcome and output as text; identity, outcome and counts as structured content. */
import type { ExecutionRecord } from "../../../../shared/api/executions.ts";
import type { NextCall, ToolAnswer } from "../answer.ts";
import type { ToolCall } from "../call.ts";
import { type Ends, outputText } from "../output-text.ts";

/** A command, which has no ID while its sandbox starts. */
export type Ran = Omit<ExecutionRecord, "exec_id" | "state"> & {
  exec_id: string | null;
  state: ExecutionRecord["state"] | "starting";
  oom?: boolean;
};

interface ExecReport {
  ends: Ends;
  /** The call that reads the omitted output; null if none was omitted. */
  rest: NextCall | null;
  /** The call that continues to follow a running command. */
  next: NextCall | null;
  /** The client gave no limit. */
  bound: boolean;
}

export function execAnswer(call: ToolCall, record: Ran, { ends, rest, next, bound }: ExecReport): ToolAnswer {
  const { exec_id, state, exit_code, signal, timed_out, stdout_bytes, stderr_bytes, duration_ms, output, oom } = record;
  const output_text = outputText(ends, rest ? `read them with ${call.spell(rest)}` : "", bound);
  const { text: shownOutput, left_out_bytes, shown_bytes } = output_text;
  const isPart = shown_bytes.stdout !== stdout_bytes || shown_bytes.stderr !== stderr_bytes;
  const note = next
    ? `[${state === "exited" ? "more output" : "not finished"}: continue with ${call.spell(next)}]`
    : "";
  const gap = note === "" || shownOutput === "" || shownOutput.endsWith("\n") ? "" : "\n";
  const text = `${headline(record)}\n${shownOutput}${gap}${note}`;
  const shownNext = next && call.shown(next);
  const result = {
    ...{
      exec_id,
      state,
      exit_code: timed_out ? null : (exit_code ?? null),
      signal: timed_out ? null : signal,
      timed_out,
      oom,
    },
    ...{ stdout_bytes, stderr_bytes, left_out_bytes: left_out_bytes || null, duration_ms, output },
    ...(isPart ? { shown_bytes } : {}),
    ...(rest && left_out_bytes > 0 ? { rest: call.shown(rest) } : {}),
    ...(shownNext ? { next: shownNext } : {}),
  };
  return { ok: true, result, text };
}

/** `exit 0 · 1.4 s` */
function headline({ state, exit_code, signal, timed_out, oom, duration_ms, exec_id }: Ran): string {
  if (state === "starting") return "The sandbox is still starting; the command has not started.";
  if (state !== "exited") return `running${exec_id === null ? "" : ` · ${exec_id}`}`;
  const time = typeof duration_ms === "number" ? ` · ${(duration_ms / 1000).toFixed(1)} s` : "";
  if (timed_out) return `timed out and was ended${time}`;
  const why = oom ? " (the sandbox ran out of memory)" : "";
  return `${signal ? `ended by ${signal}` : `exit ${exit_code}`}${why}${time}`;
}
