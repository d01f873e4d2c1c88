/** Computations that run in the aside thread: functions of an input, without any other state. */

export interface Task<Input, Output> {
  /** Unique among all tasks. */
  name: string;
  bytesOf(input: Input): number;
  /** A larger input is a bug of the caller, which bounds it. */
  mostBytes: number;
  /** An input up to this length is computed on the event loop: a thread would cost more. */
  smallBytes: number;
  run(input: Input): Output;
  /** Buffers of an input or output that change threads without a copy. */
  buffersOf?(value: Input | Output): ArrayBuffer[];
}

/** A task of some input and output: in a list of them, or as it is found by its name. */
export type AnyTask = Task<never, unknown>;
