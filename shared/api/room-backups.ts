/** Interface of a room's backup: a file with the contents of a room, from which another room can be made. */
import { Type } from "@sinclair/typebox";
import { NAME_PATTERN } from "../ids.ts";
import { fields, NONE, operation, record, timestamp } from "./contract.ts";
import { room, roomId, roomPath } from "./rooms.ts";

export const ROOM_FILE_TYPE = "application/octet-stream";

export const leftOut = record("LeftOut", {
  sandboxes: Type.Integer({ minimum: 0 }),
  snapshots: Type.Integer({ minimum: 0 }),
  checkpoints: Type.Integer({ minimum: 0, description: "Those that come without the sandboxes that they had." }),
  recordings: Type.Integer({ minimum: 0 }),
});

export const roomBackup = operation({
  name: "room_backup",
  extension: "room_backups",
  method: "GET",
  path: "/v1/rooms/{room_id}/backup",
  summary: "Take a room away as a file",
  description:
    "The room as it is at one instant: its drive, messages, inboxes, barriers and agents, its labels and lifetime, and its checkpoints with the same of each. The room goes on; its sandboxes wait for the drive for a moment. Sandboxes, also those of checkpoints, snapshots and recordings are not in it, and its first line says how many there were. Of the drive files, directories and symbolic links are kept. An answer that breaks off is no whole file, which room_from_backup says of it.",
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
  summary: "Make a room of a room's file",
  description:
    "The body is a file of room_backup, of this service or another. The room is a new one of the caller's organization, with ids of its own; no key, port or access of the former room leads to it. It is there whole or not at all. Nothing in the file is believed: whatever no room could have written itself is refused, and so is what the plan does not allow.",
  access: "org:admin",
  params: fields({ room_id: { ...roomId, description: "Name of the new room." } }),
  query: fields({
    host: Type.Optional(
      Type.String({ pattern: NAME_PATTERN, description: "Where it is to be, of several hosts; else one with memory." }),
    ),
  }),
  body: "bytes",
  output: record("RoomFromBackup", {
    room,
    of_room: Type.String({ description: "Name of the room of which the file was made." }),
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
