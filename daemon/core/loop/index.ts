/** The event loop of this process: its scheduler and its time accounting. */
import { chargeTimers } from "../clock.ts";
import { LoopFigures } from "./figures.ts";
import { LoopTime } from "./scheduler.ts";

export type { LoopFigures } from "./figures.ts";
export type { OwnerName } from "./owner.ts";
export { ownerOf } from "./owner.ts";
export { LoopTime } from "./scheduler.ts";
export { inPieces, type Steps, wholly } from "./steps.ts";
export { Pieces, type PieceTurns } from "./time-slices.ts";
export { recordTurns } from "./turn-record.ts";
export { watchLoop } from "./watch.ts";

// Captured references, so that a test's fake clock does not stop the scheduler.
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

chargeTimers((work) => {
  const go = loopTime.continuation("timer");
  return () => {
    go();
    work();
  };
});

export const loopFigures = new LoopFigures(loopTime, now);
