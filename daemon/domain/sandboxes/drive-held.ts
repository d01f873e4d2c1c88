/** Refusals of sandbox operations because of the room's drive: a held drive answers no guest, a drive over its quota accepts no file. */
import { normalize } from "node:path";
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { SandboxDeps } from "./deps.ts";
import type { SandboxRow } from "./table.ts";

type Room = Pick<SandboxRow, "room_uid">;

const HELD = {
  detail: "The drive is far over its quota, and every access to it in the room's sandboxes blocks.",
  hint: "Delete files with {{fs_delete}} until the room has no warnings.",
};

/** Called before operations that need the drive. Throws drive_full. */
export function requireDrive(deps: Pick<SandboxDeps, "driveMode">, { room_uid }: Room): void {
  if (deps.driveMode(room_uid) === "held") throw new ServiceError("drive_full", HELD);
}

/** Called before a command that starts on the drive, or saves its output there. Throws drive_full. */
export function requireDriveFor(
  deps: Pick<SandboxDeps, "driveMode">,
  room: Room,
  { cwd = "/", output_to }: { cwd?: string | undefined; output_to?: string | undefined },
): void {
  if (`${normalize(cwd)}/`.startsWith(`${DRIVE_MOUNT}/`)) requireDrive(deps, room);
  if (output_to === undefined || deps.driveMode(room.room_uid) === "open") return;
  throw new ServiceError("drive_full", { detail: "The drive is over its quota: the output could not be saved there." });
}

/** Translates guest_unreachable while the drive is held into drive_full: the guest is blocked on the drive. */
export function heldInstead(deps: Pick<SandboxDeps, "driveMode">, room: Room, error: unknown): unknown {
  const silent = error instanceof ServiceError && error.code === "guest_unreachable";
  return silent && deps.driveMode(room.room_uid) === "held"
    ? new ServiceError("drive_full", { ...HELD, cause: error })
    : error;
}
