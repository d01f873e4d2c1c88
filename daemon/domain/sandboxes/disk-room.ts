/** Check for free disk space before a guest or snapshot is saved: on a full disk all guests stall. */
import { ServiceError } from "../../core/service-error.ts";
import { freeBytes } from "../../host/files/space.ts";
import type { SandboxDeps } from "./deps.ts";

const MIB = 1024 ** 2;
/** Reserve that stays free. */
const RESERVE_MIB = 256;

/** Disk space that may be written. */
export function freeDiskMib({ paths }: Pick<SandboxDeps, "paths">): number {
  return Math.max(0, Math.floor(freeBytes(paths.data) / MIB) - RESERVE_MIB);
}

/** Throws disk_full. */
export function requireFreeDisk(deps: Pick<SandboxDeps, "paths">, mib: number): void {
  const free = freeDiskMib(deps);
  if (mib <= free) return;
  throw new ServiceError("disk_full", {
    detail: `The host's disk has ${free} MiB free for saved state; the call may need ${Math.ceil(mib)} MiB.`,
    hint: "Delete snapshots, templates or files of drives.",
  });
}
