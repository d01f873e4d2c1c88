/** Shared memory between the event loop and the thread that flushes the log. */
export const FLUSHES = {
  /** Number of requested flushes. */
  asked: 0,
  /** Up to which one everything is on disk. */
  done: 1,
  /** How long that took, in microseconds. */
  took: 2,
  /** 1: the event loop wants a message after the next. */
  isAwaited: 3,
  /** 1: there will be no more. */
  isOver: 4,
} as const;

export const makeFlushes = () => new Int32Array(new SharedArrayBuffer(Object.keys(FLUSHES).length * 4));
