/** Composition of the rooms' drives: quotas, their enforcement, and fill levels. */
import type { RoomUid } from "../../shared/ids.ts";
import { makeDrive } from "../domain/drive/index.ts";
import { DriveLevels, type Meter, type Quota } from "../domain/orgs/index.ts";
import { drivePlace } from "../domain/rooms/index.ts";
import type { Sandboxes } from "../domain/sandboxes/index.ts";
import { ProjectQuota } from "../host/files/project-quota.ts";
import type { Base } from "./base.ts";
import { systemActor } from "./records.ts";

export type Drives = ReturnType<typeof composeDrives>;

/** Before there are sandboxes. */
const NO_SHARES: Sandboxes["shares"] = { guestRooms: () => [], sharesOf: () => [] };

export function composeDrives(
  { config, log, database, inspected, giveUpSpace, finder, record }: Base,
  { capsOf, meter }: { capsOf: Quota["capsOf"]; meter: Meter },
) {
  const limits = { bytes: config["drive.limit_gib"] * 1024 ** 3, entries: config["drive.limit_entries"] };
  const by = { actor: systemActor("quota"), source: "reconciler" } as const;
  const levels = new DriveLevels({ database, log, meter, placeOf: drivePlace });
  const kernelQuota = new ProjectQuota(inspected.findings.drive_quota, log);
  let shares = NO_SHARES;
  const drive = makeDrive({
    findRoom: finder.find,
    restraints: inspected.restraints,
    kernelUse: (directory) => kernelQuota.use(directory),
    limitEntries: limits.entries,
    roomsOf: finder.ofOrg,
    keptOf: finder.keptOf,
    capsOf: (orgId) => capsOf(orgId).drive,
    onSoftExceeded: (org_id, facts) =>
      record({
        ...by,
        event: "quota.soft_exceeded",
        outcome: "success",
        org_id,
        details: { limit: "drive", ...facts },
      }),
    sharesOf: (roomUid) => shares.sharesOf(roomUid as RoomUid),
    giveUpSpace,
    onUsed: (roomUid, usedBytes) => levels.note(roomUid as RoomUid, usedBytes),
    log,
  });
  /** Starts enforcing the drive quotas of guests, which access drives through these processes. */
  const watch = (ofGuests: Sandboxes["shares"]) => {
    shares = ofGuests;
    return drive.watch({
      rooms: () => shares.guestRooms().map(finder.remembered),
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
  };
  return { drive, kernelQuota, levels, limits, watch };
}
