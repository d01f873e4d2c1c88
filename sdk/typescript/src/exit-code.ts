/** Exit code of a command for frameworks that support only numbers, by the shell's conventions. */
import { constants } from "node:os";
import type { CommandResult } from "./execution.ts";

/** The exit code of timeout(1) for a timeout. */
const TIMED_OUT = 124;
const BY_SIGNAL = 128;

export function exitCodeOf({
  exitCode,
  signal,
  timedOut,
}: Pick<CommandResult, "exitCode" | "signal" | "timedOut">): number {
  if (timedOut) return TIMED_OUT;
  return exitCode ?? BY_SIGNAL + (constants.signals[signal as "SIGTERM"] ?? 0);
}
