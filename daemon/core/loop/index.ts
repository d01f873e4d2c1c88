/** The event loop of this process: its scheduler, and the account of its time. */
import { LoopTime } from "./time.ts";

export type { OwnerName } from "./owner.ts";
export { ownerOf } from "./owner.ts";
export { LoopTime } from "./time.ts";

// The loop's own: a test that replaces the clock of the process does not stop it.
const { setImmediate, setTimeout } = globalThis;
const now = performance.now.bind(performance);

export const loopTime = new LoopTime({
  now,
  defer: (callback) => void setImmediate(callback),
  after: (ms, callback) => void setTimeout(callback, ms),
  cpu: () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
});
