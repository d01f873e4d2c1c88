/** Users of processes that may be the service's own: its user, and those that `isolation.uid_base` gives to guests. */
import { readFileSync, statSync } from "node:fs";
import { COMPUTED_IDS } from "./ids.ts";

/** Null until the configuration is known; until then any user may be one of roomd's. */
let base: number | null = null;

/** Called when the configuration is read. */
export function setUidBase(uidBase: number | null): void {
  base = uidBase;
}

/**
 * Whether a process may be one of roomd's, by its real user. Check before reading its arguments: a process's owner can make their reader
 * wait for the lock of the process's memory, and can choose their contents.
 */
export function mayBeOurs(pid: number): boolean {
  try {
    // A cheap check that excludes nearly all processes of others. A set-user-ID program appears here as its file's owner's.
    if (!isOurUser(statSync(`/proc/${pid}`).uid)) return false;
    const [, real] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return real !== undefined && isOurUser(Number(real));
  } catch {
    return false;
  }
}

function isOurUser(uid: number): boolean {
  if (base === null || uid === process.getuid?.()) return true;
  return base > 0 && uid >= base && uid < base + COMPUTED_IDS;
}
