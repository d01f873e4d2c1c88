/** Interface of moving rooms between the hosts of one service. */
import { Type } from "@sinclair/typebox";
import { NAME_PATTERN } from "../ids.ts";
import { fields, NONE, operation, record } from "./contract.ts";
import { roomId, roomPath } from "./rooms.ts";

export const roomMoved = record("RoomMoved", {
  room_id: roomId,
  room_uid: Type.String(),
  from: Type.String({ description: "Name of the previous host." }),
  to: Type.String({ description: "Name of the present host." }),
  epoch: Type.Integer({ description: "Counter of the room's hosts: 1 when it was created." }),
  drive_bytes: Type.Integer({ description: "Size of its drive's files." }),
  sandboxes_ended: Type.Array(Type.String(), { description: "The agents whose sandboxes were ended by the move." }),
  lost: fields({
    snapshots: Type.Integer(),
    checkpoints: Type.Integer(),
    recordings: Type.Integer(),
  }),
  away_ms: Type.Integer({ description: "How long the room was unreachable." }),
});

export const roomMove = operation({
  name: "room_move",
  extension: "moves",
  method: "POST",
  path: "/v1/rooms/{room_id}/move",
  summary: "Move a room to another host",
  description:
    "Transfers the whole room to the other host: its drive, messages, inboxes, barriers and agents, its labels and lifetime, its sandboxes, snapshots, checkpoints and recordings, and the answers to calls with an Idempotency-Key. Its drive is copied while it runs; then its sandboxes are saved, and calls are answered 503 room_moving until the other host has the room and resumes them. A sandbox that the other host cannot load is ended, with the cause host_evacuated. Exposed ports stay; SSH accesses and terminals end. A room with snapshots whose memory the other host cannot load, or with a sandbox that cannot be saved now, is not moved unless force is set. A room that is there already stays unchanged.",
  access: "rooms:write",
  params: roomPath,
  query: NONE,
  body: fields({
    host: Type.String({ pattern: NAME_PATTERN, description: "Name of the target host." }),
    force: Type.Optional(
      Type.Boolean({
        description:
          "Move it also if the memory of snapshots is unusable there, or a sandbox that cannot be saved now is ended.",
      }),
    ),
  }),
  output: roomMoved,
  outcomes: { ok: 200 },
  errors: [
    "room_not_found",
    "room_destroying",
    "room_moving",
    "invalid_state",
    "insufficient_capacity",
    "validation_failed",
    "host_unreachable",
    "cluster_unavailable",
    "quota_exceeded",
    "disk_full",
    "drive_full",
    "not_ready",
  ],
  audit: "room.moved",
  example: { body: { host: "host-2" } },
});
