/**
 * Interface of checkpoints: the state of a room at one instant, from which other rooms are made, and to which the room can be rolled back.
 */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, page, pageQuery, record, timestamp } from "./contract.ts";
import { room, roomId, roomPath } from "./rooms.ts";
import { agentId } from "./sandboxes.ts";
import { DEFAULT_SNAPSHOT_SECONDS, MAX_SNAPSHOT_SECONDS, madeOfSnapshot } from "./snapshots.ts";

/** Of a room. */
export const MAX_CHECKPOINTS = 64;
/** Default lifetime. */
export const DEFAULT_CHECKPOINT_SECONDS = DEFAULT_SNAPSHOT_SECONDS;

export const checkpointRecord = record("Checkpoint", {
  checkpoint_id: Type.String({ examples: ["chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"] }),
  room_id: roomId,
  name: nullable(Type.String()),
  snapshots: Type.Array(fields({ agent_id: agentId, snapshot_id: Type.String() }), {
    description: "One of each sandbox; they go with the checkpoint.",
  }),
  drive_bytes: Type.Integer({ description: "What the drive's files take." }),
  size_bytes: Type.Integer({
    description: "What all of it takes on disk: the drive, the snapshots, and what the database had.",
  }),
  paused_ms: Type.Integer({ description: "The longest that a sandbox stood still for it." }),
  created_at: timestamp,
  expires_at: nullable(timestamp),
});
export type CheckpointRecord = Static<typeof checkpointRecord>;

const checkpointId = Type.String({ pattern: "^[A-Za-z0-9_]{1,64}$", description: "Which checkpoint of the room." });
const checkpointPath = fields({ room_id: roomId, checkpoint_id: checkpointId });

const items = Type.Array(madeOfSnapshot, {
  description: "One for each sandbox of the checkpoint: what it is now, or what was in its way.",
});

const TAKING = [
  "room_not_found",
  "invalid_state",
  "room_destroying",
  "guest_unreachable",
  "quota_exceeded",
  "insufficient_capacity",
  "drive_full",
  "disk_full",
] as const;

export const checkpointCreate = operation({
  name: "room_checkpoint",
  extension: "checkpoints",
  method: "POST",
  path: "/v1/rooms/{room_id}/checkpoints",
  summary: "Take a checkpoint of a room",
  description:
    "Keeps what the room is at one instant: the memory, processes and disks of all its sandboxes, its drive, messages, inboxes, barriers and agents. All sandboxes stand still together for it and then go on, which paused_ms tells; where one cannot be saved all go on and there is no checkpoint. Of the drive files, directories and symbolic links are kept. Connections are cut by it. The checkpoint ends with the room; its size counts for the plan's drive. What is in memory is in it, secrets too.",
  access: "rooms:write",
  params: roomPath,
  query: NONE,
  body: fields({
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: "For people." })),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: 60,
        maximum: MAX_SNAPSHOT_SECONDS,
        description: `When it is deleted by itself; ${DEFAULT_SNAPSHOT_SECONDS} (7 days) if absent.`,
      }),
    ),
  }),
  output: checkpointRecord,
  outcomes: { created: 201 },
  location: "/v1/rooms/{room_id}/checkpoints/{checkpoint_id}",
  errors: [...TAKING],
  audit: "checkpoint.created",
  example: { body: { name: "before the refactoring" } },
});

export const checkpointList = operation({
  name: "checkpoint_list",
  extension: "checkpoints",
  method: "GET",
  path: "/v1/rooms/{room_id}/checkpoints",
  summary: "List a room's checkpoints",
  description: "The oldest first.",
  access: "rooms:read",
  params: roomPath,
  query: fields(pageQuery),
  body: null,
  output: page(checkpointRecord),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "invalid_cursor"],
  audit: "checkpoint.listed",
});

export const checkpointGet = operation({
  name: "checkpoint_get",
  extension: "checkpoints",
  method: "GET",
  path: "/v1/rooms/{room_id}/checkpoints/{checkpoint_id}",
  summary: "Get a checkpoint",
  access: "rooms:read",
  params: checkpointPath,
  query: NONE,
  body: null,
  output: checkpointRecord,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "checkpoint_not_found"],
  audit: "checkpoint.read",
});

export const checkpointDelete = operation({
  name: "checkpoint_delete",
  extension: "checkpoints",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/checkpoints/{checkpoint_id}",
  summary: "Delete a checkpoint",
  description: "Rooms that were made of it keep what they need of it.",
  access: "rooms:write",
  params: checkpointPath,
  query: NONE,
  body: null,
  output: fields({ checkpoint_id: Type.String(), state: oneOf(["deleted"]) }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "checkpoint_not_found", "snapshot_in_use", "invalid_state"],
  onFullDisk: true,
  audit: "checkpoint.deleted",
});

export const roomFork = operation({
  name: "room_fork",
  extension: "checkpoints",
  method: "POST",
  path: "/v1/rooms/{source_room_id}/fork",
  summary: "Make another room of a room",
  description:
    "Makes a room of a checkpoint, or of one that it takes first: every agent goes on in it where it stood, in a sandbox with a guest_cid, host name, machine id, clock and kernel randomness of its own, with the drive, messages, inboxes and barriers as they were. From there on the two rooms know nothing of each other. Its guests may go on calling their room by the name that it had. Needs sandboxes:write too.",
  access: "rooms:write",
  params: fields({ source_room_id: { ...roomId, description: "The room of which another is made." } }),
  query: NONE,
  body: fields({
    room_id: { ...roomId, description: "Name of the new room, unique among the organization's active rooms." },
    checkpoint_id: Type.Optional({
      ...checkpointId,
      description: "Which checkpoint of the source; one is taken now if absent.",
    }),
    cids: Type.Optional(
      oneOf(["suggest"], { description: "Where guest_cids come from: free ones are taken, also if absent." }),
    ),
  }),
  output: fields({ room_id: roomId, room, checkpoint_id: Type.String(), items }),
  outcomes: { created: 201 },
  location: "/v1/rooms/{room_id}",
  errors: [...TAKING, "room_id_in_use", "checkpoint_not_found", "not_ready"],
  audit: "room.forked",
  example: { body: { room_id: "build-43" } },
});

export const roomRestore = operation({
  name: "room_restore",
  extension: "checkpoints",
  method: "POST",
  path: "/v1/rooms/{room_id}/checkpoints/{checkpoint_id}/restore",
  summary: "Turn a room back to a checkpoint",
  description:
    "The room becomes what it was when the checkpoint was taken: its sandboxes, drive, messages, inboxes and barriers. What it has become since is lost; sandboxes made since are destroyed, those gone since are made anew. Names, guest_cids, ports and records of those that are still there stay. Messages that come later have higher seqs than all before. Needs sandboxes:write too.",
  access: "rooms:write",
  params: checkpointPath,
  query: NONE,
  body: null,
  output: fields({ room, items }),
  outcomes: { ok: 200 },
  errors: [...TAKING, "checkpoint_not_found", "snapshot_incompatible", "not_ready"],
  audit: "room.restored",
});
