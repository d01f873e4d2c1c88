/** The thread that flushes the database's log, so that the event loop need not wait for the disk. It is told a descriptor, and says null or why not. */
import { fdatasyncSync } from "node:fs";

declare const self: Worker;

self.onmessage = ({ data: file }: MessageEvent<number>) => {
  try {
    fdatasyncSync(file);
    postMessage(null);
  } catch (error) {
    postMessage(String(error));
  }
};
