/** Runs one command for a caller who waits: collects its output and reports its outcome. */
import { Channel } from "../../../shared/agent-protocol/messages.ts";
import type { OutputOf } from "../../../shared/api/contract.ts";
import { DEFAULT_OUTPUT_BYTES, type sandboxExec } from "../../../shared/api/executions.ts";
import { at } from "../../core/clock.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { textOf } from "../../core/text.ts";
import type { Following } from "../../host/guest-link/exec.ts";
import { Capture } from "./capture.ts";
import { beginFollowed, feedAll, outputOf, type Reach } from "./output.ts";
import { Backstop } from "./patience.ts";
import type { CommandRequest } from "./request.ts";
import type { CommandInput } from "./rules.ts";
import { type SaveStreams, Saving } from "./saving.ts";

/**
 * Runs a command to its end, or finds it begun by the same request. A caller who goes away does not end it; that its output
 * could not be saved is part of the outcome. `begun` hears, once, of an execution that this request or an earlier one began.
 */
export async function runCommand(
  reach: Reach,
  request: CommandRequest,
  input: CommandInput,
  save: SaveStreams,
  begun: (following: Pick<Following, "execution" | "existing">) => void = () => {},
): Promise<OutputOf<typeof sandboxExec>> {
  const limit = input.max_output_bytes ?? DEFAULT_OUTPUT_BYTES;
  const captures = { [Channel.stdout]: new Capture(limit), [Channel.stderr]: new Capture(limit) };
  const following = await beginFollowed(reach, request);
  begun(following);
  const over = new AbortController();
  const fed = feedAll(reach, request, over.signal);
  const saving = input.output_to === undefined ? null : new Saving(input.output_to, save);
  try {
    const output = outputOf(reach, following, 0, { backstop: new Backstop(request.start.timeout_ms) });
    let next = await output.next();
    for (; !next.done; next = await output.next()) {
      for (const { channel, bytes } of next.value) captures[channel as 1 | 2].take(bytes);
      await saving?.take(next.value);
    }
    await faultPoint("exec.done");
    const state = next.value;
    const { [Channel.stdout]: stdout, [Channel.stderr]: stderr } = captures;
    const shown = { stdout: stdout.bytes(), stderr: stderr.bytes() };
    const saved = await saving?.finish().catch((error: unknown) => saving.failed(error));
    const finished = state.finished_at_ms ?? state.started_at_ms;
    return {
      exec_id: request.start.exec_id,
      state: "exited",
      exit_code: state.timed_out ? null : state.exit_code,
      signal: state.timed_out ? null : state.signal,
      timed_out: state.timed_out,
      stdout: textOf(shown.stdout),
      stderr: textOf(shown.stderr),
      stdout_b64: shown.stdout.toString("base64"),
      stderr_b64: shown.stderr.toString("base64"),
      stdout_bytes: stdout.totalBytes,
      stderr_bytes: stderr.totalBytes,
      stdout_truncated: stdout.totalBytes > shown.stdout.byteLength,
      stderr_truncated: stderr.totalBytes > shown.stderr.byteLength,
      started_at: at(state.started_at_ms),
      finished_at: at(finished),
      duration_ms: Math.max(0, Math.round(finished - state.started_at_ms)),
      output: saved ?? null,
    };
  } catch (error) {
    saving?.abandon();
    throw error;
  } finally {
    over.abort();
    await fed;
  }
}
