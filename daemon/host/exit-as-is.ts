/**
 * Exits this process without closing anything. `process.exit` closes databases, and the last connection writes the log into the file and
 * removes the log: after a failed sync that would be the second attempt, which the kernel reports as a success.
 */
import { dlopen } from "bun:ffi";

const { symbols: libc } = dlopen("libc.so.6", { _exit: { args: ["i32"], returns: "void" } });

export function exitAsIs(status: number): never {
  libc._exit(status);
  throw new Error("the process has ended");
}
