/**
 * CPU priority: this process has high priority while it serves its host, whatever the load of the sandbox. Processes that it starts get the
 * default priority. The kernel keeps the priority per thread, and children inherit their thread's.
 *
 *     dials ── default (the device's own work must not come after it) ──▶ welcomed ── high ──▶ dials
 */
import { setPriority } from "node:os";
import { resetPriorityOfChildren } from "./libc.ts";

const FIRST = -10;
const AS_OTHERS = 0;

let isFirst = false;

/** Applies until the next call. */
export function comeFirst(is: boolean): void {
  if (is === isFirst) return;
  try {
    setPriority(is ? FIRST : AS_OTHERS);
    isFirst = is;
  } catch {
    // In some environments even root may not raise the priority: then it stays as it is.
  }
}

/** Starts a process with the default priority. Lowering our own priority for the spawn would let other processes run first. */
export function asOthers<T>(spawn: () => T): T {
  if (!isFirst) return spawn();
  resetPriorityOfChildren(true);
  try {
    return spawn();
  } finally {
    resetPriorityOfChildren(false);
  }
}
