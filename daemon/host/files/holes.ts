/**
 * Search for holes in files, by a dedicated thread, started on first use: for a search the kernel waits for writers of the file, and goes
 * through all extents up to the next data.
 */

interface SeekRequest {
  resolve(offset: number): void;
  reject(error: Error): void;
}

let thread: Worker | null = null;
/** Answered in order. */
const waiting: SeekRequest[] = [];

/** Offset of the next data from `offset` on: the range before is a hole, and reads as zeros. The file's length if there is no data. */
export function findData(file: number, offset: number): Promise<number> {
  return ask({ file, offset, isForHole: false });
}

/** End of the data at `offset`. The file's length if there is no hole after it. */
export function findHole(file: number, offset: number): Promise<number> {
  return ask({ file, offset, isForHole: true });
}

/** Order to the thread. */
export interface Looked {
  file: number;
  offset: number;
  isForHole: boolean;
}

function ask(look: Looked): Promise<number> {
  thread ??= startThread();
  thread.postMessage(look);
  return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
}

function startThread(): Worker {
  const made = new Worker(new URL("./seek-thread.ts", import.meta.url).href);
  made.unref();
  made.onmessage = ({ data: result }: MessageEvent<number | string>) => {
    const request = waiting.shift();
    if (typeof result === "number") request?.resolve(result);
    else request?.reject(new Error(result));
  };
  made.onerror = ({ message }) => {
    thread = null;
    for (const { reject } of waiting.splice(0))
      reject(new Error(`the thread that looks for holes has ended: ${message}`));
  };
  return made;
}
