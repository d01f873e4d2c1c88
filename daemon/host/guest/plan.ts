/** Owns what is needed to start a guest, as plain data. */
import type { SandboxPaths } from "../../core/paths.ts";
import type { GuestIdentity } from "../guest-link/connection.ts";
import type { Hardware } from "../machine/spec.ts";

/** The files that a guest starts from. */
export interface GuestImage {
  hardware: Hardware;
  kernel: string;
  initramfs: string;
  append: string;
  /** Empty overlay over the disk as it was when the snapshot was made. */
  snapshot_overlay: string;
  /** Memory and device state; null where there is none, or none that may be used. */
  snapshot_memory: string | null;
  /** Empty overlay over the disk as it was built, for a cold boot. */
  cold_overlay: string;
}

export interface GuestPlan {
  sandbox_id: string;
  guest_cid: number;
  memory_mib: number;
  vcpu_count: number;
  image: GuestImage;
  paths: SandboxPaths;
  /** The room's directory, or null for a guest without a drive. */
  drive_directory: string | null;
  identity: Omit<GuestIdentity, "drive">;
}

export interface HostPrograms {
  qemu: string;
  virtiofsd: string;
}
