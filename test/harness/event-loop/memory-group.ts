/** A control group with so little memory that the kernel kills processes in it, as on a host that is out of memory. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const CGROUP = "/sys/fs/cgroup/memory";
const LIMIT_BYTES = 64 * 1024 ** 2;
const group = join(CGROUP, `roomd-test-${process.pid}`);

/** Why there is none here, or null. */
export const whyNoMemoryGroup = existsSync(join(CGROUP, "memory.limit_in_bytes"))
  ? null
  : "there is no memory controller of cgroup v1 to make a want of memory with";

/** It is ended as soon as it takes more memory. */
export function starve(pid: number): void {
  mkdirSync(group, { recursive: true });
  writeFileSync(join(group, "memory.limit_in_bytes"), String(LIMIT_BYTES));
  writeFileSync(join(group, "cgroup.procs"), String(pid));
}

/** Once those in it have ended. */
export function removeMemoryGroup(): void {
  if (existsSync(group)) rmdirSync(group);
}
