/**
 * Processor time of the calling thread, by clock_gettime(2). The runtime's own figure is counted in ticks of the kernel on most hosts, in
 * steps of 4 ms or more.
 */
import { dlopen, ptr } from "bun:ffi";

/** `linux/time.h`. */
const CLOCK_THREAD_CPUTIME_ID = 3;

const libc = dlopen("libc.so.6", { clock_gettime: { args: ["i32", "ptr"], returns: "i32" } });
/** A struct timespec: seconds, nanoseconds. Bun 1.4.5 aborted when it was read as 32-bit numbers. */
const time = new BigInt64Array(2);
const address = ptr(time);

/** In milliseconds from an arbitrary point. */
export function threadTime(): number {
  libc.symbols.clock_gettime(CLOCK_THREAD_CPUTIME_ID, address);
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000;
}
