/**
 * Waits for empty pipes to become readable without reading from them: each reader reads into its own buffers. One signal serves all pipes;
 * it only means that one of them is readable or closed.
 */
import * as libc from "../libc.ts";

const waiting = new Map<number, () => void>();
let listens = false;
let looks = false;

export interface Wait {
  /** Resolves when the pipe is readable or closed, or when the wait is stopped. */
  over: Promise<void>;
  stop(): void;
}

/** The caller must not close the pipe before the wait is over. From now on reads of it do not block. */
export function waitUntilReadable(fd: number): Wait {
  if (!listens) process.on(libc.READABLE_SIGNAL, lookSoon);
  listens = true;
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const stop = () => {
    if (waiting.get(fd) !== stop) return;
    waiting.delete(fd);
    libc.signalWhenReadable(fd, false);
    resolve();
  };
  libc.signalWhenReadable(fd, true);
  waiting.set(fd, stop);
  // Bytes written earlier raise no signal.
  if (libc.pipeState(fd) !== "open") stop();
  return { over, stop };
}

/** Each write to an awaited pipe raises the signal; while this process is busy there may be thousands. */
function lookSoon(): void {
  if (!looks) setImmediate(look);
  looks = true;
}

function look(): void {
  looks = false;
  for (const [fd, stop] of waiting) if (libc.pipeState(fd) !== "open") stop();
}
