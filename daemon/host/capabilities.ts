/** Checks this process for root's capabilities(7). */
import { readFileSync } from "node:fs";

/** To listen on ports below 1024, also of vsock. */
export const CAP_NET_BIND_SERVICE = 10;

/** Whether a capability is effective in this process, or in the process that the given /proc/<pid>/status describes. */
export function hasCapability(capability: number, status = readFileSync("/proc/self/status", "utf8")): boolean {
  const [, effective] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? [];
  return effective !== undefined && ((BigInt(`0x${effective}`) >> BigInt(capability)) & 1n) === 1n;
}
