/** The longest turn of this process's event loop during some work, in milliseconds of the thread's processor time. */
import { threadTime } from "../../../daemon/host/thread-time.ts";
import { slowness } from "./slowness.ts";
import { ALLOWANCE } from "./turns.ts";

/** In the check other rings share the processors' caches, and other tests the process and its garbage. */
const BUSY = ALLOWANCE > 1 ? 2 : 1;

/** The bound of a turn of `ms` in the current environment of the test. */
export function boundOf(ms: number): number {
  return ms * BUSY * slowness();
}

/** Also counts collections of garbage that run on the thread. */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let last = threadTime();
  const turn = () => {
    const at = threadTime();
    longest = Math.max(longest, at - last);
    last = at;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
    // The turn that ended it is over by then.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  } finally {
    isOver = true;
  }
  return longest;
}
