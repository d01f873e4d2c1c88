/**
 * Owns waiting for pipes that are empty, without taking anything out of them: what reads them does that by itself, into its own
 * place. One signal serves them all; it says only that one of them has something, or has ended.
 */
import * as libc from "../libc.ts";

const waiting = new Map<number, () => void>();
let listens = false;
let looks = false;

export interface Wait {
  /** Resolves when the pipe has something to be read, or has ended, or nobody waits for it any more. */
  over: Promise<void>;
  stop(): void;
}

/** Whoever waits must not close the pipe before the wait is over. From now on reading it does not block. */
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
  // What came before that is told of by nothing.
  if (libc.pipeState(fd) !== "open") stop();
  return { over, stop };
}

/** Each write to a pipe that is waited for is told of, and while this process is busy there may be thousands. */
function lookSoon(): void {
  if (!looks) setImmediate(look);
  looks = true;
}

function look(): void {
  looks = false;
  for (const [fd, stop] of waiting) if (libc.pipeState(fd) !== "open") stop();
}
