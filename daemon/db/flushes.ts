/** Owns what the event loop and the thread that flushes the log tell each other: places in memory that both have. */
export const FLUSHES = {
  /** How many were asked for. */
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
