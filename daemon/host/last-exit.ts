/**
 * How the previous daemon ended, if by a crash: a line in runtime_dir, written by the daemon itself for an uncaught exception, and by
 * systemd for all others (ExecStopPost in the unit): its result and exit status. An end for a failure of the disk is no crash: no sandbox
 * is its cause.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { DISK_FAILED_STATUS } from "../core/disk-failure.ts";
import { errnoOf } from "../core/service-error.ts";

/** systemd's results that are crashes, whatever the status is. */
const CRASHES = ["exit-code", "core-dump", "watchdog", "oom-kill", "exception"];
/** Signals by which people and service managers end the daemon. */
const ENDINGS = ["TERM", "INT", "HUP", "QUIT", "KILL"];

/** For the next daemon. Omitted if it cannot be written. */
export function leaveExit(file: string, result: "exception"): void {
  try {
    writeFileSync(file, `${result}\n`, { mode: 0o600 });
  } catch {
    // A full runtime_dir.
  }
}

/** Cause of the previous daemon's crash; null if it did not crash, or if that is unknown. Returned once. */
export function takeCrash(file: string): string | null {
  try {
    const exitText = readFileSync(file, "utf8").trim();
    rmSync(file);
    return isCrash(exitText) ? exitText : null;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** `core-dump SEGV`, `exit-code 125`, `signal KILL`, `success 0`. */
export function isCrash(exitText: string): boolean {
  const [result = "", status = ""] = exitText.split(" ");
  if (result === "exit-code" && status === String(DISK_FAILED_STATUS)) return false;
  return CRASHES.includes(result) || (result === "signal" && !ENDINGS.includes(status));
}
