/** Owns what a sandbox refuses because of its room's drive: one that is held answers no guest, one that is over takes no file. */
import { normalize } from "node:path";
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { SandboxDeps } from "./deps.ts";
import type { SandboxRow } from "./table.ts";

type Room = Pick<SandboxRow, "room_uid">;

const HELD = {
  detail: "The drive is far over its quota, and every access to it in the room's sandboxes waits.",
  hint: "Delete files with {{fs_delete}} until the room has no warnings.",
};

/** Before what cannot be done without the drive. Throws drive_full. */
export function requireDrive(deps: Pick<SandboxDeps, "driveMode">, { room_uid }: Room): void {
  if (deps.driveMode(room_uid) === "held") throw new ServiceError("drive_full", HELD);
}

/** Before a command that begins on the drive, or leaves its output there. Throws drive_full. */
export function requireDriveFor(
  deps: Pick<SandboxDeps, "driveMode">,
  room: Room,
  { cwd = "/", output_to }: { cwd?: string | undefined; output_to?: string | undefined },
): void {
  if (`${normalize(cwd)}/`.startsWith(`${DRIVE_MOUNT}/`)) requireDrive(deps, room);
  if (output_to === undefined || deps.driveMode(room.room_uid) === "open") return;
  throw new ServiceError("drive_full", { detail: "The drive is over its quota: the output could not be saved there." });
}

/** What a guest's failure to answer means while its drive is held: it waits for the drive. */
export function heldInstead(deps: Pick<SandboxDeps, "driveMode">, room: Room, error: unknown): unknown {
  const silent = error instanceof ServiceError && error.code === "guest_unreachable";
  return silent && deps.driveMode(room.room_uid) === "held"
    ? new ServiceError("drive_full", { ...HELD, cause: error })
    : error;
}
