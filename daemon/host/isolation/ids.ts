/**
 * User and group ids of guest processes: numbers without a passwd entry, derived from ids that are never reused. A guest that breaks out of
 * its QEMU finds nothing on the host that belongs to its user but its own disk and sockets; neither does a later guest, since no state
 * records which number is free.
 *
 *     base ─┬─ 1024 ranges of 65536: a room's drive, user n of its guests is range + n on the host
 *           ├─ 2^26 numbers: in pairs, QEMU and vsock device of a sandbox
 *           └─ 65536 groups: that of an organization's templates, by a number that the database has
 */
import { createHash } from "node:crypto";

/** A process's user, and a group with the same number. */
export interface Identity {
  uid: number;
  /** Supplementary groups: that of /dev/kvm, and those of templates. */
  groups: readonly number[];
}

/** User ids that exist in a guest. */
export const DRIVE_RANGE = 65_536;
const DRIVE_RANGES = 1024;
const SANDBOX_IDS = 2 ** 26;
/** Number of computed IDs from the base on. */
export const COMPUTED_IDS = DRIVE_RANGE * DRIVE_RANGES + SANDBOX_IDS;
/** Number of groups after the computed IDs; an organization keeps its group for ever from its first template on. */
export const ORG_GROUPS = 65_536;
/** Number of roomd's IDs from the base on. */
export const ID_SPAN = COMPUTED_IDS + ORG_GROUPS;

/** Among a thousand sandboxes two share a pair once in a hundred times; those lack one of several isolation layers. */
export function sandboxIds(base: number, sandboxId: string): { qemu: number; vsock: number } {
  const qemu = base + DRIVE_RANGE * DRIVE_RANGES + 2 * numberOf(sandboxId, SANDBOX_IDS / 2);
  return { qemu, vsock: qemu + 1 };
}

/** The group that may read the host's templates. One ID in 2^25 is also that of a sandbox, which may read them anyway. */
export function templateGroup(base: number): number {
  return base + COMPUTED_IDS - 2;
}

/** The group that reads the templates of an organization, by its number. */
export function orgTemplateGroup(base: number, number: number): number {
  if (number >= ORG_GROUPS)
    throw new Error(`organization ${number} is beyond the ${ORG_GROUPS} that may have templates`);
  return base + COMPUTED_IDS + number;
}

/** The host's ID of user 0 in the guests of a room. */
export function driveRoot(base: number, roomUid: string): number {
  return base + DRIVE_RANGE * numberOf(roomUid, DRIVE_RANGES);
}

function numberOf(id: string, below: number): number {
  return createHash("sha256").update(id).digest().readUInt32BE(0) % below;
}
