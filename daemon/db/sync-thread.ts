/** The thread that flushes the database's log, so that the event loop need not wait for the disk. It is told a descriptor, and says how many milliseconds that took, or why not. */
import { fdatasyncSync } from "node:fs";

declare const self: Worker;

self.onmessage = ({ data: file }: MessageEvent<number>) => {
  try {
    const startedAt = performance.now();
    fdatasyncSync(file);
    postMessage(performance.now() - startedAt);
  } catch (error) {
    postMessage(String(error));
  }
};
