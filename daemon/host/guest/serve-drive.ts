/**
 * The processes behind a guest's drive: start of the current one, and the port that it is plugged into. The guest mounts it in
 * guest-agent/drive.
 */
import { entryTo } from "../confine/index.ts";
import { driveRootOf, ownedDirectory } from "../isolation/directories.ts";
import type { KnownProcess } from "../process.ts";
import { DRIVE_TAG, startShare } from "../virtiofs/share.ts";
import type { GuestHost, GuestPlan } from "./plan.ts";

/** The guest's port that the drive is plugged into, stored for the next daemon. */
export interface DrivePlace {
  /** Number of ports used up before this one. */
  turn: number;
  /** How many the guest has. */
  ports: number;
  /** Whether the guest has mounted the device that is plugged there. */
  mounted: boolean;
}

/** Owner of the served drive: a guest, or a stand-in. */
export interface Served {
  plan: Pick<GuestPlan, "sandbox_id" | "paths" | "drive_directory" | "drive_limit_bytes">;
  host: GuestHost;
  share?: KnownProcess;
}

/** Starts virtiofsd for the guest's drive, if it has one; QEMU can connect then. `restores`: its saved state will be loaded into it. */
export async function serveDrive(parts: Served, restores = false): Promise<void> {
  const { plan, host } = parts;
  const { paths, drive_directory, drive_limit_bytes } = plan;
  if (drive_directory === null) return;
  const client = host.isolation.usersOf(plan.sandbox_id)?.qemu.uid ?? null;
  await ownedDirectory(paths.fs_sockets, driveRootOf(drive_directory), client ?? 0);
  parts.share = await startShare({
    virtiofsd: host.programs.virtiofsd,
    directory: drive_directory,
    socket: paths.virtiofs,
    logFile: paths.vmm_log,
    client,
    enter: entryTo(host.confinement, plan.sandbox_id),
    restores,
  });
  // Before the guest exists: any other mode is set by the first check of the drive.
  host.restraints.set(parts.share, "open", drive_limit_bytes);
}

/** Tag under which the guest sees it: its kernel refuses a second device of the same name. */
export function driveTag(turn: number): string {
  return turn === 0 ? DRIVE_TAG : `${DRIVE_TAG}${turn}`;
}
