/**
 * The thread that flushes the database's log, so that the event loop never waits long for the disk. It sleeps until a flush is requested,
 * and reports the reason of a failure; requests and results are in FLUSHES.
 */
import { fdatasyncSync } from "node:fs";
import { monotonicMs } from "../core/clock.ts";
import { FLUSHES } from "./flushes.ts";

declare const self: Worker;

self.onmessage = ({ data: { flushes, log } }: MessageEvent<{ flushes: Int32Array; log: number }>) => {
  for (let done = 0; ; ) {
    Atomics.wait(flushes, FLUSHES.asked, done);
    if (Atomics.load(flushes, FLUSHES.isOver) === 1) return;
    const ticket = Atomics.load(flushes, FLUSHES.asked);
    const startedAt = monotonicMs();
    try {
      fdatasyncSync(log);
    } catch (error) {
      return postMessage(String(error));
    }
    done = ticket;
    Atomics.store(flushes, FLUSHES.took, Math.round((monotonicMs() - startedAt) * 1000));
    Atomics.store(flushes, FLUSHES.done, done);
    Atomics.notify(flushes, FLUSHES.done);
    if (Atomics.exchange(flushes, FLUSHES.isAwaited, 0) === 1) postMessage(null);
  }
};
