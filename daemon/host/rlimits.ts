/** Resource limits that our processes inherit: those required for every guest's process. */
import { dlopen } from "bun:ffi";

const RLIMIT_CORE = 4;

const { symbols: libc } = dlopen("libc.so.6", { setrlimit: { args: ["i32", "ptr"], returns: "i32" } });

/** Forbids core files, which would contain guests' memory. */
export function forbidCores(): void {
  if (libc.setrlimit(RLIMIT_CORE, new BigUint64Array([0n, 0n])) !== 0) throw new Error("setrlimit refused RLIMIT_CORE");
}
