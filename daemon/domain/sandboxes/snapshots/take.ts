/** Creation of one snapshot, from the check for space to the row by which it exists. */
import { rm } from "node:fs/promises";
import { DEFAULT_SNAPSHOT_SECONDS, MAX_SNAPSHOTS, type SnapshotMode } from "../../../../shared/api/snapshots.ts";
import { newId, type OrgId, type SnapshotId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { type RoomTarget, requireActive } from "../../../core/call/room-target.ts";
import { after, now } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { SnapshotRequest } from "../../../host/guest/save.ts";
import { digestSaved, diskUse } from "../../../host/guest/saved-state.ts";
import type { SandboxDeps } from "../deps.ts";
import { freeDiskMib, requireFreeDisk } from "../disk-room.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { SnapshotPlaces } from "./place.ts";
import { countSnapshots, findSnapshot, insertSnapshot, snapshotBytes } from "./store.ts";
import type { SnapshotRow } from "./table.ts";

const MIB = 1024 ** 2;

export interface TakeRequest {
  name?: string | undefined;
  mode?: SnapshotMode | undefined;
  expires_in_seconds?: number | undefined;
}

/**
 * Throws invalid_state, quota_exceeded, insufficient_capacity, disk_full, guest_unreachable. A retry of the call returns the same snapshot.
 */
export async function takeSnapshot(
  { deps, supervisors, places }: { deps: SandboxDeps; supervisors: Supervisors; places: SnapshotPlaces },
  call: KeyCall,
  room: RoomTarget,
  supervisor: Supervisor,
  { name, mode = "full", expires_in_seconds = DEFAULT_SNAPSHOT_SECONDS }: TakeRequest,
): Promise<SnapshotRow> {
  const { queries } = deps.database;
  const snapshot_id: SnapshotId = newId("snap", call.work.ulid);
  const known = findSnapshot(queries, room.room_uid, snapshot_id);
  if (known) return known;
  const created_at = now();
  const { files } = places.of({ room_uid: room.room_uid, snapshot_id, mode });
  return await places.use(snapshot_id, async () => {
    const used = await requireSpace(deps, room, [supervisor], { mode });
    const expires_at = after(created_at, expires_in_seconds);
    const about = { snapshot_id, mode, name: name ?? null, created_at, expires_at };
    try {
      const snapshot = await takeFiles({ supervisors, places }, call, supervisor, about);
      await faultPoint("snapshot.whole");
      await deps.database.commit((within) => {
        requireActive(deps.currentRoom(room.room_uid));
        keepSnapshots(deps, within, room, used, [snapshot]);
      });
      await noteParent(deps, supervisor, snapshot_id);
      return snapshot;
    } catch (error) {
      await rm(files.directory, { recursive: true, force: true });
      throw error;
    }
  });
}

/** Records this snapshot as the parent of the sandbox's next one. */
export async function noteParent({ log }: SandboxDeps, supervisor: Supervisor, snapshot_id: SnapshotId): Promise<void> {
  await supervisor.change({ snapshot_id }).catch((error: unknown) =>
    log.warn("failed to record a snapshot as its sandbox's last", {
      ...{ snapshot_id, sandbox_id: supervisor.row.sandbox_id, error: describeError(error) },
    }),
  );
}

type SnapshotFacts = Pick<SnapshotRow, "snapshot_id" | "mode" | "name" | "created_at" | "expires_at"> &
  Pick<SnapshotRequest, "whenReady" | "whileStill"> & { checkpoint_id?: SnapshotRow["checkpoint_id"] };

/** Writes a snapshot's files; the snapshot exists once the returned row is stored. Throws like supervisor.snapshot. */
export async function takeFiles(
  { supervisors, places }: { supervisors: Supervisors; places: SnapshotPlaces },
  call: KeyCall,
  supervisor: Supervisor,
  { whenReady, whileStill, checkpoint_id = null, ...about }: SnapshotFacts,
): Promise<SnapshotRow> {
  const { row } = supervisor;
  const { files } = places.of({ ...about, room_uid: row.room_uid });
  const { snapshot_id, mode } = about;
  const meetings = { ...(whenReady && { whenReady }), ...(whileStill && { whileStill }) };
  const request = { snapshot_id, mode, into: files, ...meetings };
  const { paused_ms, size_bytes, parent } = await supervisors.use(row.sandbox_id, () => supervisor.snapshot(request));
  const { env, egress_mode, egress_allowlist, guest_net, fabric_attached } = supervisor.row;
  return {
    ...about,
    room_uid: row.room_uid,
    org_id: row.org_id,
    agent_id: row.agent_id,
    sandbox_id: row.sandbox_id,
    parent,
    memory_mib: row.memory_mib,
    vcpu_count: row.vcpu_count,
    disk_mib: row.disk_mib,
    template_id: row.template_id,
    template_digest: row.template_digest,
    settings: { env, egress_mode, egress_allowlist, guest_net, fabric_attached },
    size_bytes,
    paused_ms,
    digest: await digestSaved(files),
    created_by_type: "key",
    created_by_id: call.caller.key_id,
    checkpoint_id,
  };
}

/** An organization's disk use before, and the part of it that was snapshots. */
export interface DiskUseBefore {
  all: number;
  snapshots: number;
}

/**
 * Before any guest is paused: checks for space for snapshots of these sandboxes, which take at most their written data and their memory;
 * `bytes`: size of other data to be kept. Throws quota_exceeded, disk_full.
 */
export async function requireSpace(
  deps: SandboxDeps,
  { room_uid, org_id }: Pick<RoomTarget, "room_uid" | "org_id">,
  supervisors: readonly Supervisor[],
  { mode, bytes = 0 }: { mode: SnapshotMode; bytes?: number },
): Promise<DiskUseBefore> {
  const { queries } = deps.database;
  requireCount(countSnapshots(queries, room_uid), supervisors.length);
  const snapshots = snapshotBytes(queries, org_id);
  const all = await deps.driveUsed(org_id);
  const written = supervisors.map(({ row }) => diskUse(deps.paths.sandbox(row.sandbox_id)));
  // The memory of a hibernated sandbox is on disk already.
  const memories = supervisors.map(({ row, guest }) => (mode === "full" && guest ? row.memory_mib * MIB : 0));
  const requiredBytes = total(memories) + bytes;
  if (requiredBytes > 0) requireFreeDisk(deps, requiredBytes / MIB);
  requireCap(deps, org_id, all, requiredBytes + total(written));
  return { all, snapshots };
}

/** The same for data that is written before the data it replaces is deleted. */
export async function requireBytes(
  deps: SandboxDeps,
  orgId: OrgId,
  { added, freed = 0 }: { added: number; freed?: number },
): Promise<void> {
  requireFreeDisk(deps, added / MIB);
  requireCap(deps, orgId, Math.max(0, (await deps.driveUsed(orgId)) - freed), added);
}

/** Bytes that may still be written, in addition to `written`, which are not counted yet: the remainder of the plan and of the disk. */
export async function bytesLeft(deps: SandboxDeps, orgId: OrgId, written: number): Promise<number> {
  const { hard_cap_bytes } = deps.quota.capsOf(orgId).drive;
  const ofPlan = hard_cap_bytes - (await deps.driveUsed(orgId)) - written;
  return Math.max(0, Math.min(ofPlan, freeDiskMib(deps) * MIB));
}

const total = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0);

/** Within the transaction that inserts the snapshots; counts others taken since `used` was measured. Throws quota_exceeded. */
export function keepSnapshots(
  deps: SandboxDeps,
  within: Queries,
  { room_uid, org_id }: Pick<RoomTarget, "room_uid" | "org_id">,
  used: DiskUseBefore,
  made: readonly SnapshotRow[],
  bytes = 0,
): void {
  requireCount(countSnapshots(within, room_uid), made.length);
  const others = Math.max(0, snapshotBytes(within, org_id) - used.snapshots);
  requireCap(deps, org_id, used.all + others, total(made.map(({ size_bytes }) => size_bytes)) + bytes);
  for (const snapshot of made) insertSnapshot(within, snapshot);
}

/** Throws quota_exceeded. */
function requireCap({ quota }: SandboxDeps, orgId: OrgId, used: number, more: number): void {
  const { hard_cap_bytes } = quota.capsOf(orgId).drive;
  if (used + more <= hard_cap_bytes) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The organization's drives and snapshots take ${used} bytes, and the call may need ${more} more; its plan's cap is ${hard_cap_bytes}.`,
    details: { limit: "drive_bytes", used, cap: hard_cap_bytes },
    hint: "Delete snapshots (roomd snapshot delete) or files of drives.",
  });
}

/** Throws quota_exceeded. */
function requireCount(held: number, more: number): void {
  if (held + more <= MAX_SNAPSHOTS) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The room has ${held} of the ${MAX_SNAPSHOTS} snapshots that a room may have, and the call adds ${more}.`,
    details: { limit: "snapshots", used: held, cap: MAX_SNAPSHOTS },
    hint: "Delete one first (roomd snapshot delete).",
  });
}
