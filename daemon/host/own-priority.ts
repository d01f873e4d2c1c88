/** Disk priority of this process and of those that it starts. */
import { dlopen } from "bun:ffi";

const { symbols: libc } = dlopen("libc.so.6", {
  syscall: { args: ["i64", "i32", "i32", "i32"], returns: "i64" },
});

/** ioprio_set(2) on x86_64: IOPRIO_WHO_PROCESS, this one, and the class that is served when the disk is idle otherwise. */
const IOPRIO_SET = 251;
const WHO_PROCESS = 1;
const IDLE = 3 << 13;

/** All other reads and writes come first, if the disk's scheduler supports that. */
export function yieldDisk(): void {
  libc.syscall(IOPRIO_SET, WHO_PROCESS, 0, IDLE);
}
