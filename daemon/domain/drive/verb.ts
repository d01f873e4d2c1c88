/** Common part of all drive verbs: their room, its drive held open, and the mapping of its errors. */
import type { Operation } from "../../../shared/api/contract.ts";
import { type Bound, bind, type Done, type KeyCall, type Verb } from "../../core/call/operation.ts";
import { findRoom } from "../../core/call/room-target.ts";
import type { Pieces } from "../../core/loop/index.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import { Beneath } from "../../host/files/beneath.ts";
import type { DriveDeps, DriveRoom } from "./deps.ts";
import { driveError, type Meaning } from "./errors.ts";
import type { NameLocks } from "./files/name-locks.ts";
import type { Quiesce } from "./files/quiesce.ts";
import type { RoomUsage } from "./quota/room-quota.ts";
import type { Usage } from "./quota/usage.ts";

export interface Drive extends DriveDeps {
  usage: Usage;
  turns: NameLocks;
  stillness: Quiesce;
  /** For long work on a drive; the signal aborts it. */
  piecesOf(room: Pick<DriveRoom, "org_id">, signal?: AbortSignal): Pieces;
}

/** A room's drive during one call. */
export interface OpenDrive {
  room: DriveRoom;
  root: Beneath;
  /** Usage of the drive that is held open, also when the room ends in the meantime. */
  usage: RoomUsage;
}

type Run<Op extends Operation> = Verb<Op, OpenDrive>["run"];
type Rules<Op extends Operation> = Verb<Op, DriveRoom>["rules"];

/** Binds a drive verb; verbs that need drive:write are refused if the room is being destroyed. */
export function bindDrive<Op extends Operation>(
  drive: Drive,
  operation: Op,
  verb: { rules?: NonNullable<Rules<Op>>; run: Run<Op> },
): Bound {
  return bind<Op, DriveRoom>(operation, {
    find: (call, params) => findRoom(drive, call as KeyCall, params),
    rules: (input, room, bad) => verb.rules?.(input, room, bad) ?? [],
    run: async (call, input, room, transfer): Promise<Done<Op>> => {
      if (operation.access === "drive:write" && room.state !== "active") throw new ServiceError("room_destroying");
      try {
        using root = openRoot(drive, call as KeyCall, room);
        return await verb.run(call, input, { room, root, usage: drive.usage.of(room) }, transfer);
      } catch (error) {
        throw driveError(error, operation.errors.includes("path_not_found") ? {} : VANISHED);
      }
    },
  });
}

/** The call makes the file itself, so a missing entry means that a guest removed a directory above it during the call. */
const VANISHED: Record<string, Meaning> = {
  ENOENT: ["invalid_path", "A directory in the path was removed during the call."],
  ENOTDIR: ["invalid_path", "A part of the path is not a directory."],
};

function openRoot(drive: Drive, call: KeyCall, room: DriveRoom): Beneath {
  try {
    return Beneath.open(room.drive_directory);
  } catch (error) {
    // The directory is removed before the room's final state is written.
    const isGone = errnoOf(error) === "ENOENT";
    // The room may have ended since the lookup, and another room may have its name.
    const now = isGone ? drive.findRoom(call.caller, room.room_id) : room;
    if (isGone && (now.room_uid !== room.room_uid || now.state !== "active")) throw new ServiceError("room_not_found");
    throw new Error("the room's drive cannot be opened", { cause: error });
  }
}
