/**
 * Owns who comes first on the processors: this process while it serves its host, however much the sandbox has to do. What it begins for
 * others comes as any other. The kernel keeps precedence by thread, and what a thread begins has its.
 *
 *   dials ── as others (the device's own work must not come after it) ──▶ welcomed ── first ──▶ dials
 */
import { setPriority } from "node:os";
import { resetPriorityOfChildren } from "./libc.ts";

const FIRST = -10;
const AS_OTHERS = 0;

let isFirst = false;

/** From now on, until it is told otherwise. */
export function comeFirst(is: boolean): void {
  if (is === isFirst) return;
  try {
    setPriority(is ? FIRST : AS_OTHERS);
    isFirst = is;
  } catch {
    // Not root's to do everywhere: then it takes its turn.
  }
}

/** Begins a process that comes as any other. To come last ourselves meanwhile would let others go before it. */
export function asOthers<T>(spawn: () => T): T {
  if (!isFirst) return spawn();
  resetPriorityOfChildren(true);
  try {
    return spawn();
  } finally {
    resetPriorityOfChildren(false);
  }
}
