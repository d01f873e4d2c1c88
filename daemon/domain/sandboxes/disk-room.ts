/** Owns whether the host's disk has room for what is saved, before that is written there: on a full disk all guests stand still. */
import { ServiceError } from "../../core/service-error.ts";
import { freeBytes } from "../../host/files/space.ts";
import type { SandboxDeps } from "./deps.ts";

const MIB = 1024 ** 2;
/** What has to be free besides. */
const RESERVE_MIB = 256;

/** What may be written. */
export function freeDiskMib({ paths }: Pick<SandboxDeps, "paths">): number {
  return Math.max(0, Math.floor(freeBytes(paths.data) / MIB) - RESERVE_MIB);
}

/** Throws disk_full. */
export function requireFreeDisk(deps: Pick<SandboxDeps, "paths">, mib: number): void {
  const free = freeDiskMib(deps);
  if (mib <= free) return;
  throw new ServiceError("disk_full", {
    detail: `The host's disk has ${free} MiB free for what is saved; this may need ${Math.ceil(mib)} MiB.`,
    hint: "Delete snapshots, templates or files of drives.",
  });
}
