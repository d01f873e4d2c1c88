/** Users of processes that may be the service's own: its user, and those that `isolation.uid_base` gives to guests. */
import { readFileSync, statSync } from "node:fs";
import { COMPUTED_IDS } from "./ids.ts";

/** Null until the configuration is known: any user may be one of ours then. */
let base: number | null = null;

/** Called as the configuration is read. */
export function setUidBase(uidBase: number | null): void {
  base = uidBase;
}

/**
 * Whether a process may be one of ours, by its real user. Its arguments are not read before that: a process's owner can have a reader of
 * them wait for the lock of its memory, and choose their contents.
 */
export function mayBeOurs(pid: number): boolean {
  try {
    // Cheap, and true of nearly all processes of others. A set-user-ID program is its file's owner's here.
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
