/**
 * An execution's output as events of a stream: started, stdout, stderr, and always exit or error as the last one.
 */
import { Channel, type ExecState } from "../../../../../shared/agent-protocol/messages.ts";
import type { Piece } from "../../../../../shared/agent-protocol/pieces.ts";
import { errorEvent } from "../../../../core/call/error-event.ts";
import type { StreamEvent } from "../../../../core/call/operation.ts";
import { at } from "../../../../core/clock.ts";
import type { Following } from "../../../../host/guest-link/exec.ts";
import { asServiceError } from "./errors.ts";
import { outputOf, type Reach } from "./output.ts";

export interface EventsOptions {
  /** Seq of the last event that the caller knows; -1 for none. */
  after: number;
  /** Whether to wait for future events. */
  follow: boolean;
  /** The command is never slowed down by this reader (no backpressure). */
  aside: boolean;
  /** Ends the stream, with an error when the reason is a ServiceError. */
  signal: AbortSignal;
}

/** `first` continues after `after`. Never throws: an error is the last event. */
export async function* eventsOf(
  reach: Reach,
  first: Following,
  { after, follow, aside, signal }: EventsOptions,
): AsyncGenerator<readonly StreamEvent[]> {
  const { execution } = first;
  try {
    if (after < 0) {
      const { exec_id, started_at_ms } = execution;
      yield [{ id: 0, data: { seq: 0, type: "started", exec_id, started_at: at(started_at_ms) } }];
    }
    let state: ExecState | null = null;
    const output = follow ? outputOf(reach, first, Math.max(after, 0), { signal, aside }) : onceOf(first);
    for (;;) {
      const next = await output.next();
      if (next.done) {
        state = next.value;
        break;
      }
      yield next.value.map(({ seq, channel, bytes }) => {
        const type = channel === Channel.stdout ? "stdout" : "stderr";
        return { id: seq, data: { seq, type }, data_b64: bytes };
      });
    }
    if (state.state === "exited") yield [exitOf(state)];
  } catch (error) {
    yield [errorEvent(signal.aborted ? signal.reason : error)];
  } finally {
    first.close();
  }
}

/** The pieces available now. */
async function* onceOf(first: Following): AsyncGenerator<readonly Piece[], ExecState> {
  try {
    yield* first.pieces();
    return await first.finished;
  } catch (error) {
    throw asServiceError(error, { exec_id: first.execution.exec_id, started: true });
  }
}

function exitOf(state: ExecState): StreamEvent {
  const { exit_code, signal, timed_out, oom, stdout_bytes, stderr_bytes, started_at_ms, finished_at_ms, last_seq } =
    state;
  const finished = finished_at_ms ?? started_at_ms;
  const seq = last_seq + 1;
  const ended = { exit_code, signal, timed_out, ...(oom && { oom }) };
  const ending = { ...ended, stdout_bytes, stderr_bytes, finished_at: at(finished) };
  const duration_ms = Math.max(0, Math.round(finished - started_at_ms));
  return { id: seq, data: { seq, type: "exit", ...ending, duration_ms } };
}
