/** An aside thread with tasks for tests: of the thread's end, of endless computing and of errors. */
import { ServiceError } from "../../../daemon/core/service-error.ts";
import { serveTasks } from "../../../daemon/host/aside/serve.ts";
import type { Task } from "../../../daemon/host/aside/task.ts";

export const MAX_BYTES = 1_000;
export const SMALL_BYTES = 10;

const bounds = { mostBytes: MAX_BYTES, smallBytes: SMALL_BYTES };

/** Reports whether it runs on the thread or on the event loop. */
export const placeOfTask: Task<{ bytes: number }, "thread" | "loop"> = {
  name: "test.place",
  bytesOf: ({ bytes }) => bytes,
  ...bounds,
  run: () => (Bun.isMainThread ? "loop" : "thread"),
};

/** Makes the thread fail in this way until `times` runs out; then returns 0. */
export const misfortuneOfTask: Task<{ is: "endless" | "exit" | "fail" | "refuse"; times: Int32Array }, number> = {
  name: "test.misfortune",
  bytesOf: () => MAX_BYTES,
  ...bounds,
  run: ({ is, times }) => {
    if (Atomics.sub(times, 0, 1) <= 0) return 0;
    while (is === "endless");
    if (is === "exit") process.exit(1);
    if (is === "fail") throw new Error("as a test asked for");
    throw new ServiceError("validation_failed", { detail: "as a test asked for", details: { at: 1 } });
  },
};

/** Computes for some milliseconds, and returns how many tasks were done before. */
export const longOfTask: Task<{ ms: number }, number> = {
  name: "test.long",
  bytesOf: () => MAX_BYTES,
  ...bounds,
  run: ({ ms }) => {
    const until = performance.now() + ms;
    while (performance.now() < until);
    return done++;
  },
};
let done = 0;

/** Doubles each byte of a buffer that is transferred both ways. */
export const doubledOfTask: Task<{ buffer: ArrayBuffer }, { buffer: ArrayBuffer }> = {
  name: "test.doubled",
  bytesOf: ({ buffer }) => buffer.byteLength,
  mostBytes: MAX_BYTES,
  smallBytes: 0,
  run: ({ buffer }) => ({ buffer: new Uint8Array(buffer).map((byte) => byte * 2).buffer }),
  buffersOf: ({ buffer }) => [buffer],
};

// It is imported by tests too.
if (!Bun.isMainThread) serveTasks([placeOfTask, misfortuneOfTask, longOfTask, doubledOfTask]);
