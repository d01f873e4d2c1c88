/** Computations that run in the aside thread: functions of an input, without any other state. */

export interface Task<Input, Output> {
  /** Unique among all tasks. */
  name: string;
  bytesOf(input: Input): number;
  /** Maximum input size. The caller bounds its input, so a larger one is a bug. */
  mostBytes: number;
  /** An input up to this length is computed on the event loop: a thread would cost more. */
  smallBytes: number;
  run(input: Input): Output;
  /** Buffers of an input or output that are transferred between threads without a copy. */
  buffersOf?(value: Input | Output): ArrayBuffer[];
}

/** A task of any input and output types, in a list or after a lookup by name. */
export type AnyTask = Task<never, unknown>;
