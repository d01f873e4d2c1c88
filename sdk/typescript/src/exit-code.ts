/** Owns what frameworks that know only numbers are told of a command's end: what a shell would say of it. */
import { constants } from "node:os";
import type { CommandResult } from "./execution.ts";

/** What timeout(1) says of a command that was out of time. */
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
