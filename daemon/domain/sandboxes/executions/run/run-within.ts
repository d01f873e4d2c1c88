/** Follows a command for a caller with a wait limit: the wait may end before the command does. */

import { sleep } from "../../../../core/clock.ts";
import { getInGuest } from "../../../../host/guest-link/exec.ts";
import { followFrom, outputOf, type Reach } from "./output.ts";
import { Backstop } from "./patience.ts";
import { savedOf } from "./record.ts";
import type { CommandRequest } from "./request.ts";
import { capturesFor, exitedResult, runningResult } from "./result.ts";
import type { CommandInput } from "./rules.ts";
import { limitOf } from "./run.ts";

/** Interval between two checks whether the output is saved. */
const SAVED_EVERY_MS = 100;

/**
 * The outcome of a started execution, or its state when `over` aborts. A background execution's output is saved by other code: an outcome
 * waits for that too, until `over`. Throws ServiceError.
 */
export async function resultWithin(reach: Reach, request: CommandRequest, input: CommandInput, over: AbortSignal) {
  const { exec_id } = request.start;
  const { output_to: path = null } = input;
  const captures = capturesFor(input);
  const first = await followFrom(reach, exec_id, { after: 0, follow: true });
  const output = outputOf(reach, first, 0, { signal: over, backstop: new Backstop(limitOf(request)) });
  let last_seq = 0;
  try {
    for (;;) {
      const next = await output.next();
      if (next.done) return exitedResult(exec_id, next.value, captures, await savedWithin(reach, exec_id, path, over));
      for (const { seq, channel, bytes } of next.value) {
        captures[channel as 1 | 2].take(bytes);
        last_seq = seq;
      }
    }
  } catch (error) {
    if (!over.aborted) throw error;
    return runningResult(first.execution, captures, last_seq, savedOf(path, ""));
  }
}

async function savedWithin(reach: Reach, execId: string, path: string | null, over: AbortSignal) {
  for (;;) {
    const note = path === null ? "" : (await getInGuest(await reach(true, over), execId)).note;
    if (path === null || note !== "" || over.aborted) return savedOf(path, note);
    await sleep(SAVED_EVERY_MS);
  }
}
