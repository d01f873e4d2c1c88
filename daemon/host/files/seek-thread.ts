/**
 * The thread that searches for holes in files. It receives a descriptor and an offset, and replies with the offset of the next data or
 * hole, or with an error.
 */
import type { Looked } from "./holes.ts";
import { nextData, nextHole } from "./libc.ts";

declare const self: Worker;

self.onmessage = ({ data: { file, offset, isForHole } }: MessageEvent<Looked>) => {
  try {
    postMessage(isForHole ? nextHole(file, offset) : nextData(file, offset));
  } catch (error) {
    postMessage(String(error));
  }
};
