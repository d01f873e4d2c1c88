/**
 * Owns looking for holes in files, by a thread of its own, which is made when it is first needed: for a look the kernel waits until
 * who writes to the file lets it, and goes through all extents up to the next data.
 */

interface Asked {
  resolve(offset: number): void;
  reject(error: Error): void;
}

let thread: Worker | null = null;
/** Answered in order. */
const waiting: Asked[] = [];

/** The next data from `offset` on: what is before is a hole, and reads as zeros. The file's length where there is none. */
export function findData(file: number, offset: number): Promise<number> {
  return ask({ file, offset, isForHole: false });
}

/** Where the data at `offset` ends. The file's length where there is no hole after it. */
export function findHole(file: number, offset: number): Promise<number> {
  return ask({ file, offset, isForHole: true });
}

/** What the thread is told. */
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
  made.onmessage = ({ data: said }: MessageEvent<number | string>) => {
    const asked = waiting.shift();
    if (typeof said === "number") asked?.resolve(said);
    else asked?.reject(new Error(said));
  };
  made.onerror = ({ message }) => {
    thread = null;
    for (const { reject } of waiting.splice(0))
      reject(new Error(`the thread that looks for holes has ended: ${message}`));
  };
  return made;
}
