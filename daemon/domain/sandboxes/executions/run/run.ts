/** Runs one command for a waiting caller: collects its output and reports its outcome. */
import type { OutputOf } from "../../../../../shared/api/contract.ts";
import type { sandboxExec } from "../../../../../shared/api/executions.ts";
import { faultPoint } from "../../../../core/fault-points.ts";
import type { Following } from "../../../../host/guest-link/exec.ts";
import { beginFollowed, feedAll, outputOf, type Reach } from "./output.ts";
import { Backstop } from "./patience.ts";
import type { CommandRequest } from "./request.ts";
import { capturesFor, exitedResult } from "./result.ts";
import type { CommandInput } from "./rules.ts";
import { type SaveStreams, Saving } from "./saving.ts";

/** The time limit of a request in ms; Infinity for none. */
export function limitOf({ start }: CommandRequest): number {
  return start.unlimited ? Number.POSITIVE_INFINITY : start.timeout_ms;
}

/**
 * Runs a command to its end, or finds it started by the same request. If the caller disconnects, the command continues; a failure to save
 * its output is part of the outcome. `begun` is called once, for an execution that this request or an earlier one started.
 */
export async function runCommand(
  reach: Reach,
  request: CommandRequest,
  input: CommandInput,
  save: SaveStreams,
  onStarted: (following: Pick<Following, "execution" | "existing">) => void = () => {},
): Promise<OutputOf<typeof sandboxExec>> {
  const captures = capturesFor(input);
  const following = await beginFollowed(reach, request);
  onStarted(following);
  const over = new AbortController();
  const fed = feedAll(reach, request, over.signal);
  const saving = input.output_to === undefined ? null : new Saving(input.output_to, save);
  try {
    const output = outputOf(reach, following, 0, { backstop: new Backstop(limitOf(request)) });
    let next = await output.next();
    for (; !next.done; next = await output.next()) {
      for (const { channel, bytes } of next.value) captures[channel as 1 | 2].take(bytes);
      await saving?.take(next.value);
    }
    await faultPoint("exec.done");
    const saved = await saving?.finish().catch((error: unknown) => saving.failed(error));
    return exitedResult(request.start.exec_id, next.value, captures, saved ?? null);
  } catch (error) {
    saving?.abandon();
    throw error;
  } finally {
    over.abort();
    await fed;
  }
}
