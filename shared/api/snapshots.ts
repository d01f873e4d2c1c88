/** Interface of snapshots: the state of a sandbox at one moment, from which others are made, and to which it can be rolled back. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, page, pageQuery, record, timestamp } from "./contract.ts";
import { roomId, roomPath } from "./rooms.ts";
import { agentId, environment, guestCid, sandbox, sandboxPath } from "./sandboxes.ts";

export const SNAPSHOT_MODES = ["full", "disk"] as const;
export type SnapshotMode = (typeof SNAPSHOT_MODES)[number];

/** Maximum number of snapshots of a room. */
export const MAX_SNAPSHOTS = 256;
/** Default lifetime. */
export const DEFAULT_SNAPSHOT_SECONDS = 7 * 24 * 3600;
export const MAX_SNAPSHOT_SECONDS = 365 * 24 * 3600;
/** Maximum number of sandboxes that one fork call creates. */
export const MAX_FORKS = 64;

export const snapshotRecord = record("Snapshot", {
  snapshot_id: Type.String({ examples: ["snap_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"] }),
  room_id: roomId,
  agent_id: agentId,
  sandbox_id: Type.String({ description: "The sandbox of which it was taken." }),
  name: nullable(Type.String()),
  parent: nullable(
    Type.String({ description: "The snapshot from which its sandbox came, or the last one taken of it before." }),
  ),
  mode: oneOf(SNAPSHOT_MODES, {
    description: "full: memory, processes and disk. disk: its own disk alone, from which sandboxes boot.",
  }),
  memory_mib: Type.Integer(),
  vcpu_count: Type.Integer(),
  template_id: Type.String(),
  size_bytes: Type.Integer({ description: "Size on disk in addition to its parent." }),
  paused_ms: Type.Integer({ description: "How long its sandbox was paused." }),
  digest: Type.String(),
  checkpoint_id: nullable(Type.String({ description: "The checkpoint that it is part of, and is deleted with." })),
  created_at: timestamp,
  expires_at: nullable(timestamp),
});
export type SnapshotRecord = Static<typeof snapshotRecord>;

/** Result for one of several sandboxes to be made from snapshots. */
export const madeOfSnapshot = record("Fork", {
  agent_id: agentId,
  sandbox: nullable(sandbox),
  problem: nullable(
    record("ForkProblem", {
      code: Type.String(),
      title: Type.String(),
      detail: Type.String(),
      details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    }),
  ),
});

const snapshotPath = fields({ room_id: roomId, snapshot_id: Type.String({ pattern: "^[A-Za-z0-9_]{1,64}$" }) });

export const expiresInSeconds = Type.Optional(
  Type.Integer({
    minimum: 60,
    maximum: MAX_SNAPSHOT_SECONDS,
    description: `Lifetime, after which it is deleted; ${DEFAULT_SNAPSHOT_SECONDS} (7 days) if absent.`,
  }),
);

const TAKING = [
  "room_not_found",
  "sandbox_not_found",
  "invalid_state",
  "room_destroying",
  "guest_unreachable",
  "quota_exceeded",
  "insufficient_capacity",
  "drive_full",
  "disk_full",
] as const;

export const snapshotCreate = operation({
  name: "sandbox_snapshot",
  extension: "snapshots",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/snapshots",
  summary: "Take a snapshot of a sandbox",
  description:
    "Saves the state of the sandbox at one moment; the sandbox resumes after a short pause of paused_ms. Sandboxes are created from it with snapshot_id, and the sandbox returns to it with rollback. Its open connections are closed. The snapshot outlives its sandbox and ends with the room; its size counts toward the plan's drive quota. It contains everything in memory, including secrets.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: fields({
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: "For people." })),
    mode: Type.Optional(oneOf(SNAPSHOT_MODES, { description: "full if absent." })),
    expires_in_seconds: expiresInSeconds,
  }),
  output: snapshotRecord,
  outcomes: { created: 201 },
  location: "/v1/rooms/{room_id}/snapshots/{snapshot_id}",
  errors: [...TAKING],
  audit: "snapshot.created",
  example: { body: { name: "before the refactoring" } },
});

export const snapshotList = operation({
  name: "snapshot_list",
  extension: "snapshots",
  method: "GET",
  path: "/v1/rooms/{room_id}/snapshots",
  summary: "List a room's snapshots",
  description: "Oldest first; parent makes a tree of them.",
  access: "sandboxes:read",
  params: roomPath,
  query: fields({ agent_id: Type.Optional(agentId), ...pageQuery }),
  body: null,
  output: page(snapshotRecord),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "invalid_cursor"],
  audit: "snapshot.listed",
});

export const snapshotGet = operation({
  name: "snapshot_get",
  extension: "snapshots",
  method: "GET",
  path: "/v1/rooms/{room_id}/snapshots/{snapshot_id}",
  summary: "Get a snapshot",
  access: "sandboxes:read",
  params: snapshotPath,
  query: NONE,
  body: null,
  output: snapshotRecord,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "snapshot_not_found"],
  audit: "snapshot.read",
});

export const snapshotDelete = operation({
  name: "snapshot_delete",
  extension: "snapshots",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/snapshots/{snapshot_id}",
  summary: "Delete a snapshot",
  description: "Sandboxes created from it, and snapshots of those, keep the data that they need.",
  access: "sandboxes:write",
  params: snapshotPath,
  query: NONE,
  body: null,
  output: fields({ snapshot_id: Type.String(), state: oneOf(["deleted"]) }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "snapshot_not_found", "snapshot_in_use"],
  onFullDisk: true,
  audit: "snapshot.deleted",
});

export const sandboxFork = operation({
  name: "sandbox_fork",
  extension: "snapshots",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/fork",
  summary: "Fork a running sandbox",
  description:
    "Takes a snapshot, and creates a sandbox from it for each of the agents: the same memory, processes and disk, with its own agent, guest_cid, host name, machine id, clock and kernel randomness. Each item has the sandbox or the problem. Random values that programs drew before are the same in all of them, and so is the environment of running processes; programs are notified by /etc/roomd/after-restore.d.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: fields({
    agents: Type.Array(
      fields({
        agent_id: agentId,
        guest_cid: Type.Optional(guestCid),
        env: environment,
      }),
      { minItems: 1, maxItems: MAX_FORKS, description: "One for each forked sandbox: the agent that it serves." },
    ),
    expires_in_seconds: expiresInSeconds,
  }),
  output: fields({
    snapshot_id: Type.String(),
    items: Type.Array(madeOfSnapshot, {
      description: "One for each agent, in their order: its sandbox, or the problem that prevented it.",
    }),
  }),
  outcomes: { ok: 200 },
  errors: [...TAKING, "invalid_env_json", "reserved_env_key"],
  audit: "sandbox.forked",
  example: { body: { agents: [{ agent_id: "try-1" }, { agent_id: "try-2", env: { SEED: "2" } }] } },
});

export const sandboxRollback = operation({
  name: "sandbox_rollback",
  extension: "snapshots",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/rollback",
  summary: "Roll back a sandbox to a snapshot",
  description:
    "Restores the sandbox to the snapshot, with its agent, sandbox_id, guest_cid, ports and records unchanged. Later changes are lost, and running commands end as rolled_back. The room's drive is not rolled back.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: fields({
    snapshot_id: Type.String({
      pattern: "^[A-Za-z0-9_]{1,64}$",
      description: "Snapshot of the room; of the same template, memory and processors as the sandbox.",
    }),
  }),
  output: sandbox,
  outcomes: { ok: 200 },
  errors: [...TAKING, "snapshot_not_found", "snapshot_incompatible", "not_ready"],
  audit: "sandbox.rolled_back",
  example: { body: { snapshot_id: "snap_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2" } },
});
