/** Forwards piped standard input, to its end or until the command stops reading it. */
import { fstatSync } from "node:fs";
import { ProblemError } from "../../../../sdk/typescript/src/errors.ts";
import { Execution } from "../../../../sdk/typescript/src/execution.ts";
import { executionStdin } from "../../../../shared/api/executions.ts";
import { toCliError } from "../../kit/cli-error.ts";
import { LASTING, sdk } from "../../kit/client.ts";
import { stdinParts } from "../../kit/standard-input.ts";
import type { ExecutionName } from "./exec-follow.ts";

/** Whether standard input is a file, a pipe or a socket, rather than a terminal, a device or closed. */
export function isPiped(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    return false;
  }
}

/** Resolves also when the follower of the command has ended. */
export async function passOnStdin(name: ExecutionName, over: AbortSignal): Promise<void> {
  const execution = new Execution(sdk(executionStdin), name, name.exec_id, 0);
  const options = { retry: LASTING, signal: over, timeoutMs: Number.POSITIVE_INFINITY };
  try {
    for await (const chunk of stdinParts()) await execution.write(chunk, options);
    await execution.end(options);
  } catch (error) {
    // The command has ended, or no longer reads: handled as a broken pipe, without an error message.
    const isOver = over.aborted || (error instanceof ProblemError && error.code === "invalid_state");
    if (!isOver) throw toCliError(error);
  }
}
