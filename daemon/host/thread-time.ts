/**
 * Processor time of the calling thread, by clock_gettime(2): what the runtime reports is counted by the kernel's ticks on most hosts, and so
 * has steps of 4 ms and more.
 */
import { dlopen, ptr } from "bun:ffi";

/** `linux/time.h`. */
const CLOCK_THREAD_CPUTIME_ID = 3;

const libc = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
/** A struct timespec: seconds, nanoseconds. */
const time = new BigInt64Array(2);
const address = ptr(time);

/** In milliseconds; only differences mean something. */
export function threadTime(): number {
  libc.symbols.clock_gettime(CLOCK_THREAD_CPUTIME_ID, address);
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000;
}
