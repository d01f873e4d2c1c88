/**
 * Interface of checkpoints: the state of a room at one instant, from which other rooms are made, and to which the room can be rolled back.
 */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, page, pageQuery, record, timestamp } from "./contract.ts";
import { room, roomId, roomPath } from "./rooms.ts";
import { agentId } from "./sandboxes.ts";
import { DEFAULT_SNAPSHOT_SECONDS, expiresInSeconds, madeOfSnapshot } from "./snapshots.ts";

/** Maximum number of checkpoints of a room. */
export const MAX_CHECKPOINTS = 64;
/** Default lifetime. */
export const DEFAULT_CHECKPOINT_SECONDS = DEFAULT_SNAPSHOT_SECONDS;

export const checkpointRecord = record("Checkpoint", {
  checkpoint_id: Type.String({ examples: ["chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"] }),
  room_id: roomId,
  name: nullable(Type.String()),
  snapshots: Type.Array(fields({ agent_id: agentId, snapshot_id: Type.String() }), {
    description: "One per sandbox; deleted with the checkpoint.",
  }),
  drive_bytes: Type.Integer({ description: "Size of the drive's files." }),
  size_bytes: Type.Integer({
    description: "Total size on disk: the drive, the snapshots, and data of the database.",
  }),
  paused_ms: Type.Integer({ description: "Longest pause of a sandbox." }),
  created_at: timestamp,
  expires_at: nullable(timestamp),
});
export type CheckpointRecord = Static<typeof checkpointRecord>;

const checkpointId = Type.String({ pattern: "^[A-Za-z0-9_]{1,64}$", description: "Id of a checkpoint of the room." });
const checkpointPath = fields({ room_id: roomId, checkpoint_id: checkpointId });

const items = Type.Array(madeOfSnapshot, {
  description: "One per sandbox of the checkpoint: the sandbox, or the problem that prevented it.",
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
    "Saves the state of the room at one instant: the memory, processes and disks of all its sandboxes, its drive, messages, inboxes, barriers and agents. All sandboxes are paused together and then resumed; paused_ms is the duration. If one cannot be saved, all are resumed and there is no checkpoint. Of the drive, files, directories and symbolic links are saved. Open connections are closed. The checkpoint ends with the room; its size counts toward the plan's drive quota. It contains everything in memory, including secrets.",
  access: "rooms:write",
  params: roomPath,
  query: NONE,
  body: fields({
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: "For people." })),
    expires_in_seconds: expiresInSeconds,
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
  description: "Oldest first.",
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
  description: "Rooms created from it keep the data that they need.",
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
  summary: "Fork a room",
  description:
    "Creates a room from a checkpoint, or from one taken first: every agent continues in it from its saved state, in a sandbox with its own guest_cid, host name, machine id, clock and kernel randomness, with the drive, messages, inboxes and barriers as saved. From then on the two rooms are independent. Its guests may continue to address their room by its former name. Needs sandboxes:write too.",
  access: "rooms:write",
  params: fields({ source_room_id: { ...roomId, description: "The source room." } }),
  query: NONE,
  body: fields({
    room_id: { ...roomId, description: "Name of the new room, unique among the organization's active rooms." },
    checkpoint_id: Type.Optional({
      ...checkpointId,
      description: "Checkpoint of the source; one is taken now if absent.",
    }),
    cids: Type.Optional(
      oneOf(["suggest"], { description: "Source of guest_cids: free ones are assigned, also if absent." }),
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
  summary: "Restore a room from a checkpoint",
  description:
    "Resets the room to the checkpoint: its sandboxes, drive, messages, inboxes and barriers. Later changes are lost; sandboxes created since are destroyed, those destroyed since are recreated. Names, guest_cids, ports and records of the remaining ones stay. New messages have higher seqs than all before. Needs sandboxes:write too.",
  access: "rooms:write",
  params: checkpointPath,
  query: NONE,
  body: null,
  output: fields({ room, items }),
  outcomes: { ok: 200 },
  errors: [...TAKING, "checkpoint_not_found", "snapshot_incompatible", "not_ready"],
  audit: "room.restored",
});
