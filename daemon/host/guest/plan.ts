/** Input for starting a guest, as plain data. */

import type { SandboxId } from "../../../shared/ids.ts";
import type { Mailbox } from "../../core/concurrency/mailbox.ts";
import type { SandboxPaths, SavedPaths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import type { Confinement } from "../confine/confinement.ts";
import type { GuestIdentity } from "../guest-link/connection.ts";
import type { GuestRequests } from "../guest-link/handshake.ts";
import type { VsockTransport } from "../guest-link/transports/transport.ts";
import type { Isolation } from "../isolation/index.ts";
import type { Hardware } from "../machine/spec.ts";
import type { Throttle } from "../virtiofs/throttle.ts";

/** The files that a guest starts from. */
export interface GuestImage {
  hardware: Hardware;
  kernel: string;
  initramfs: string;
  append: string;
  /** The disk as built. */
  root: string;
  /** Empty overlay over `root`, for a cold boot. */
  cold_overlay: string;
  /** Replaces it for a cold boot of a snapshot. */
  over?: SnapshotDisk;
  /** The disk at the time of the snapshot, an overlay over `root`. */
  snapshot_disk: string;
  /** Empty overlay over that. */
  snapshot_overlay: string;
  /** Memory and device state; null if absent or unusable. */
  snapshot_memory: string | null;
  /** Number of virtual processors in the snapshot. */
  snapshot_vcpus: number;
  /** Generation of the guest protocol that its agent speaks. */
  agent_generation: number;
  /** Time that its programs may take to start on a boot: then that comes before the agent is set up. */
  start_ms: number;
}

/** A launched machine that is not assigned to a sandbox yet. */
export interface LaunchPlan {
  sandbox_id: SandboxId;
  image: GuestImage;
  paths: SandboxPaths;
  vcpu_count: number;
  memory_mib: number;
}

/** The disk of a snapshot, which other disks use as their backing file. */
export interface SnapshotDisk {
  from: SavedPaths;
  /** The layers of its disk, topmost first. */
  layers: readonly string[];
}

/** A guest, whatever image it was started from: that image may be deleted while the guest runs. */
export interface GuestPlan extends Pick<LaunchPlan, "sandbox_id" | "paths"> {
  guest_cid: number;
  /** The room's directory, or null for a guest without a drive. */
  drive_directory: string | null;
  /** The largest file that the guest may write to the drive, from its start on; 0 without a drive. */
  drive_limit_bytes: number;
  identity: Omit<GuestIdentity, "drive">;
  /** Handler of the guest's requests. */
  requests: GuestRequests;
}

/** Data from which a saved guest is restored, independent of its template. */
export interface SavedMachine extends Pick<GuestImage, "hardware" | "append" | "agent_generation"> {}

/** A guest that is to be started. */
export interface StartPlan extends GuestPlan, LaunchPlan {
  /** Deadline for its agent to connect, in addition to the programs that a boot starts. */
  agent_deadline_ms: number;
}

/** Environment in which guests start. */
export interface GuestHost {
  programs: { qemu: string; virtiofsd: string };
  /** Transport of new guests. */
  transport: VsockTransport;
  /**
   * Transport for guests that are or were started with this kind, at the first port that their agent dials. Throws not_ready while it is
   * unavailable.
   */
  transportOf(kind: VsockTransport["kind"], firstPort: number): VsockTransport;
  isolation: Isolation;
  confinement: Confinement;
  restraints: Throttle;
  /** Queue in which adopted guests get another vsock device. */
  renewals: Mailbox;
  log: Log;
}

/**
 * The host for guests of an organization, by the number of its template group (isolation/ids.ts); null: the host's, or an organization
 * without templates.
 */
export function hostOfOrg(host: GuestHost, number: number | null): GuestHost {
  return { ...host, isolation: host.isolation.ofOrg(number) };
}
