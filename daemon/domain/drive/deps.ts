import type { OrgId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Caller } from "../../core/operation.ts";
import type { ProcessRecord } from "../../host/process.ts";
import type { Restraints } from "../../host/virtiofs/restrain.ts";
import type { PlanCaps } from "../orgs/index.ts";

/** What the drive needs to know of a room. */
export interface DriveRoom {
  room_id: string;
  room_uid: string;
  org_id: OrgId;
  state: "active" | "destroying" | "destroyed";
  /** The directory on the host that the room's guests have as /mnt/drive. */
  drive_directory: string;
  drive_limit_bytes: number;
}

export type DriveCaps = PlanCaps["drive"];

export interface OrgDeps {
  /** The organization's rooms that are not destroyed. */
  roomsOf(orgId: OrgId): readonly Pick<DriveRoom, "room_uid" | "org_id" | "drive_directory">[];
  /** Those that are, and whose drives are kept. */
  keptOf(orgId: OrgId): readonly Pick<DriveRoom, "room_uid" | "org_id" | "drive_directory">[];
  capsOf(orgId: OrgId): DriveCaps;
  /** The drives have come to take more than the soft cap. */
  onSoftExceeded(orgId: OrgId, facts: { used: number; cap: number }): void;
}

export interface DriveDeps extends OrgDeps {
  /** Throws room_not_found. */
  findRoom(caller: Caller, roomId: string): DriveRoom;
  /** Most names that a drive may have. */
  limitEntries: number;
  /** The processes by which guests reach this room's drive. */
  sharesOf(roomUid: string): ProcessRecord[];
  /** What the shares let their guests do. */
  restraints: Restraints;
  /** What the kernel says that a drive takes; null where it keeps no quota of it. */
  kernelUse(directory: string): { bytes: number; inodes: number } | null;
  /** Hears of each change of what a drive takes, as far as it is measured. */
  onUsed(roomUid: string, usedBytes: number): void;
  /** Makes some space on a full disk for what frees more; false when there is none to make. */
  giveUpSpace(): boolean;
  log: Log;
}
