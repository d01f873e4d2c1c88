/** Owns the processes behind a guest's drive: starting the one of the moment, and where it is plugged. */
import { entryTo } from "../confine/index.ts";
import { driveRootOf, ownedDirectory } from "../isolation/directories.ts";
import type { KnownProcess } from "../process.ts";
import { DRIVE_TAG, startShare } from "../virtiofs/share.ts";
import type { GuestHost, GuestPlan } from "./plan.ts";

/** Which of the guest's ports the drive is plugged into, kept on disk for a daemon that comes after this one. */
export interface DrivePlace {
  /** How many were used up before it. */
  turn: number;
  /** How many the guest has. */
  ports: number;
  /** Whether the guest has mounted what is plugged there. */
  mounted: boolean;
}

/** Whose drive is served: a guest's, or what stands in for one. */
export interface Served {
  plan: Pick<GuestPlan, "sandbox_id" | "paths" | "drive_directory" | "drive_limit_bytes">;
  host: GuestHost;
  share?: KnownProcess;
}

/** Starts virtiofsd for the guest's drive, if it has one; QEMU can connect then. `restores`: what it knew is loaded into it. */
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
  // Before the guest is there: what it may do else comes with the first look at the drive.
  host.restraints.set(parts.share, "open", drive_limit_bytes);
}

/** By which the guest knows it: its kernel refuses a second device of one name. */
export function driveTag(turn: number): string {
  return turn === 0 ? DRIVE_TAG : `${DRIVE_TAG}${turn}`;
}
