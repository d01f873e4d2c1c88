/** Limits on concurrent resources of the host for callers of one sandbox, independent of the limits in its guest. */
import { MAX_LIVE_EXECUTIONS, MAX_READERS, MAX_WAITING_STDIN_BYTES } from "../../../../shared/api/executions.ts";
import { ConcurrencyLimit } from "../../../core/concurrency/concurrency-limit.ts";
import { ServiceError } from "../../../core/service-error.ts";

export interface ExecutionLimits {
  /** Commands with waiting callers, each with its buffered output. */
  waiting: ConcurrencyLimit;
  /** Calls that wait for a command to read its standard input, and the bytes of that input. */
  feeding: ConcurrencyLimit;
  stdin_bytes: ConcurrencyLimit;
  /** Streams of output. */
  readers: ConcurrencyLimit;
}

export function makeExecutionLimits(): ExecutionLimits {
  const places = (most: number, detail: string) =>
    new ConcurrencyLimit(most, () => new ServiceError("too_many_executions", { detail }));
  const mib = MAX_WAITING_STDIN_BYTES / 1024 / 1024;
  return {
    waiting: places(MAX_LIVE_EXECUTIONS, `${MAX_LIVE_EXECUTIONS} calls wait for commands, which is the maximum.`),
    feeding: places(
      MAX_LIVE_EXECUTIONS,
      `${MAX_LIVE_EXECUTIONS} calls wait for standard input to be read, which is the maximum.`,
    ),
    stdin_bytes: places(
      MAX_WAITING_STDIN_BYTES,
      `Too much standard input is unread: at most ${mib} MiB may wait in a sandbox.`,
    ),
    readers: places(MAX_READERS, `${MAX_READERS} streams are read from the sandbox, which is the maximum.`),
  };
}
