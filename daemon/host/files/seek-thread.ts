/** The thread that looks for holes in files. It is told a descriptor and an offset, and says where the next data is, or why not. */
import { nextData } from "./libc.ts";

declare const self: Worker;

self.onmessage = ({ data: { file, offset } }: MessageEvent<{ file: number; offset: number }>) => {
  try {
    postMessage(nextData(file, offset));
  } catch (error) {
    postMessage(String(error));
  }
};
