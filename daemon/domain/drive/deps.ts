import type { OrgId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Log } from "../../core/log.ts";
import type { ProcessRecord } from "../../host/process.ts";
import type { Throttle } from "../../host/virtiofs/throttle.ts";
import type { PlanCaps } from "../orgs/index.ts";

/** The facts about a room that the drive needs. */
export interface DriveRoom {
  room_id: string;
  room_uid: string;
  org_id: OrgId;
  state: "active" | "destroying" | "destroyed";
  /** Host directory that guests of the room mount at /mnt/drive. */
  drive_directory: string;
  drive_limit_bytes: number;
}

export type DriveCaps = PlanCaps["drive"];

export type UsageRoom = Pick<DriveRoom, "room_uid" | "org_id" | "drive_directory">;

export interface OrgDeps {
  /** The organization's rooms that are not destroyed, in pages that are read as they are consumed. */
  roomsOf(orgId: OrgId): Iterable<readonly UsageRoom[]>;
  /** Destroyed rooms with retained drives, in the same way. */
  keptOf(orgId: OrgId): Iterable<readonly UsageRoom[]>;
  capsOf(orgId: OrgId): DriveCaps;
  /** The drives now use more than the soft cap. */
  onSoftExceeded(orgId: OrgId, facts: { used: number; cap: number }): void;
}

export interface DriveDeps extends OrgDeps {
  /** Throws room_not_found. */
  findRoom(caller: Caller, roomId: string): DriveRoom;
  /** Maximum number of names on a drive. */
  limitEntries: number;
  /** Processes through which guests access this room's drive. */
  sharesOf(roomUid: string): ProcessRecord[];
  /** The restraints of shares: modes that limit their guests. */
  restraints: Throttle;
  /** The drive's usage according to the kernel; null if the kernel keeps no quota for it. */
  kernelUse(directory: string): { bytes: number; inodes: number } | null;
  /** Called on each change of a drive's usage, as far as it is measured. */
  onUsed(roomUid: string, usedBytes: number): void;
  /** Frees some space on a full disk for an operation that frees more; false if nothing can be freed. */
  giveUpSpace(): boolean;
  log: Log;
}
