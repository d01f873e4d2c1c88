/** Shared memory between the event loop and the thread that flushes the log. */
export const FLUSHES = {
  /** Number of requested flushes. */
  asked: 0,
  /** Number of the last completed flush. */
  done: 1,
  /** Duration of that flush in microseconds. */
  took: 2,
  /** 1: the event loop requests a message after the next flush. */
  isAwaited: 3,
  /** 1: no further flushes follow. */
  isOver: 4,
} as const;

export const makeFlushes = () => new Int32Array(new SharedArrayBuffer(Object.keys(FLUSHES).length * 4));
