/** Composition of the rooms' drives: quotas, their enforcement, and fill levels. */
import type { RoomUid } from "../../shared/ids.ts";
import { makeDrive } from "../domain/drive/index.ts";
import { DriveLevels } from "../domain/orgs/index.ts";
import { drivePlace } from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import { ProjectQuota } from "../host/files/project-quota.ts";
import type { Base } from "./base.ts";
import type { Orgs } from "./orgs.ts";
import { systemActor } from "./records.ts";

export type Drives = ReturnType<typeof composeDrives>;

/** Parts composed later. */
interface Later {
  shares(): Sandboxes["shares"];
}

export function composeDrives(
  { config, log, database, inspected, giveUpSpace, finder, record }: Base,
  { quota, meter }: Orgs,
  later: Later,
) {
  const limits = { bytes: config["drive.limit_gib"] * 1024 ** 3, entries: config["drive.limit_entries"] };
  const by = { actor: systemActor("quota"), source: "reconciler" } as const;
  const levels = new DriveLevels({ database, log, meter, placeOf: drivePlace });
  const kernelQuota = new ProjectQuota(inspected.findings.drive_quota, log);
  const drive = makeDrive({
    findRoom: finder.find,
    restraints: inspected.restraints,
    kernelUse: (directory) => kernelQuota.use(directory),
    limitEntries: limits.entries,
    roomsOf: finder.ofOrg,
    keptOf: finder.keptOf,
    capsOf: (orgId) => quota.capsOf(orgId).drive,
    onSoftExceeded: (org_id, facts) =>
      record({
        ...by,
        event: "quota.soft_exceeded",
        outcome: "success",
        org_id,
        details: { limit: "drive", ...facts },
      }),
    sharesOf: (roomUid) => later.shares().sharesOf(roomUid as RoomUid),
    giveUpSpace,
    onUsed: (roomUid, usedBytes) => levels.note(roomUid as RoomUid, usedBytes),
    log,
  });
  /** Starts enforcing the drive quotas of guests. */
  const watch = () =>
    drive.watch({
      rooms: () => later.shares().guestRooms().map(finder.remembered),
      onChange: ({ room_id, room_uid, org_id }, mode, { used_bytes, entry_count }) => {
        log.warn("drive quota", { room_id, mode, used_bytes, entry_count });
        record({
          ...by,
          event: `quota.drive_${mode}`,
          outcome: mode === "open" ? "success" : "denied",
          org_id,
          room_id,
          room_uid,
          details: { used_bytes, entry_count, limit_bytes: limits.bytes, limit_entries: limits.entries },
        });
      },
    });
  return { drive, kernelQuota, levels, limits, watch };
}
