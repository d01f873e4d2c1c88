/** The thread that looks for holes in files. It is told a descriptor and an offset, and says where the next data or hole is, or why not. */
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
