/** Interface of a room's backup: a file with the contents of a room, from which another room can be made. */
import { Type } from "@sinclair/typebox";
import { NAME_PATTERN } from "../ids.ts";
import { fields, NONE, operation, record, timestamp } from "./contract.ts";
import { room, roomId, roomPath } from "./rooms.ts";

export const ROOM_FILE_TYPE = "application/octet-stream";

export const leftOut = record("LeftOut", {
  sandboxes: Type.Integer({ minimum: 0 }),
  snapshots: Type.Integer({ minimum: 0 }),
  checkpoints: Type.Integer({ minimum: 0, description: "Checkpoints that come without their sandboxes." }),
  recordings: Type.Integer({ minimum: 0 }),
});

export const roomBackup = operation({
  name: "room_backup",
  extension: "room_backups",
  method: "GET",
  path: "/v1/rooms/{room_id}/backup",
  summary: "Back up a room to a file",
  description:
    "The state of the room at one instant: its drive, messages, inboxes, barriers and agents, its labels and lifetime, and its checkpoints with the same of each. The room keeps running; its sandboxes wait for the drive for a moment. Sandboxes, also those of checkpoints, snapshots and recordings are not included; the first line has their numbers. Of the drive, files, directories and symbolic links are included. A truncated answer is not a complete file, and room_from_backup rejects it.",
  access: "org:admin",
  params: roomPath,
  query: NONE,
  body: null,
  output: Type.Unknown(),
  outcomes: { ok: 200 },
  bytesOutput: [ROOM_FILE_TYPE],
  errors: [
    "room_not_found",
    "room_destroying",
    "invalid_state",
    "quota_exceeded",
    "drive_full",
    "disk_full",
    "not_ready",
    "shutting_down",
  ],
  audit: "room.backed_up",
});

export const roomFromBackup = operation({
  name: "room_from_backup",
  extension: "room_backups",
  method: "PUT",
  path: "/v1/rooms/{room_id}/backup",
  summary: "Create a room from a backup",
  description:
    "The body is a file of room_backup, of this service or another. The room is a new room of the caller's organization, with its own ids; no key, port or access of the former room is valid for it. It is created completely or not at all. The file is untrusted: content that no room could have written is refused, and so is content that the plan does not allow.",
  access: "org:admin",
  params: fields({ room_id: { ...roomId, description: "Name of the new room." } }),
  query: fields({
    host: Type.Optional(
      Type.String({
        pattern: NAME_PATTERN,
        description: "Target host, if there are several; else a host with memory.",
      }),
    ),
  }),
  body: "bytes",
  output: record("RoomFromBackup", {
    room,
    of_room: Type.String({ description: "Name of the room that was backed up." }),
    backed_up_at: timestamp,
    left_out: leftOut,
  }),
  outcomes: { created: 201 },
  errors: [
    "invalid_body",
    "room_id_in_use",
    "invalid_state",
    "quota_exceeded",
    "validation_failed",
    "insufficient_capacity",
    "drive_full",
    "disk_full",
    "host_unreachable",
    "cluster_unavailable",
    "not_ready",
    "shutting_down",
  ],
  audit: "room.created",
});
