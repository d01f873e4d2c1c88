/** Owns taking one snapshot, from the question whether there is room for it to its row, by which it is there. */
import { rm } from "node:fs/promises";
import { DEFAULT_SNAPSHOT_SECONDS, MAX_SNAPSHOTS, type SnapshotMode } from "../../../../shared/api/snapshots.ts";
import { newId, type OrgId, type SnapshotId } from "../../../../shared/ids.ts";
import { after, now } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import type { KeyCall } from "../../../core/operation.ts";
import { type RoomTarget, requireActive } from "../../../core/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { freeBytes } from "../../../host/files/space.ts";
import type { SnapshotRequest } from "../../../host/guest/save.ts";
import { digestSaved } from "../../../host/guest/saved.ts";
import type { SandboxDeps } from "../deps.ts";
import type { Supervisor } from "../supervisor.ts";
import type { Supervisors } from "../supervisors.ts";
import type { SnapshotPlaces } from "./place.ts";
import { countSnapshots, findSnapshot, insertSnapshot } from "./store.ts";
import type { SnapshotRow } from "./table.ts";

const MIB = 1024 ** 2;
/** What has to be free besides. */
const RESERVE_BYTES = 256 * MIB;

export interface TakeRequest {
  name?: string | undefined;
  mode?: SnapshotMode | undefined;
  expires_in_seconds?: number | undefined;
}

/** Throws invalid_state, quota_exceeded, insufficient_capacity, disk_full, guest_unreachable. The same call again finds the same. */
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
  await requireRoom(deps, supervisor, mode);
  const created_at = now();
  return await places.use(snapshot_id, async () => {
    const { files } = places.of({ room_uid: room.room_uid, snapshot_id, mode });
    const about = {
      snapshot_id,
      mode,
      name: name ?? null,
      created_at,
      expires_at: after(created_at, expires_in_seconds),
    };
    const snapshot = await takeFiles({ supervisors, places }, call, supervisor, about);
    await faultPoint("snapshot.whole");
    try {
      await deps.database.commit((within) => {
        requireActive(deps.currentRoom(room.room_uid));
        insertSnapshot(within, snapshot);
        requireCount(countSnapshots(within, room.room_uid) - 1);
      });
    } catch (error) {
      await rm(files.directory, { recursive: true, force: true });
      throw error;
    }
    await supervisor.change({ snapshot_id });
    return snapshot;
  });
}

type About = Pick<SnapshotRow, "snapshot_id" | "mode" | "name" | "created_at" | "expires_at"> &
  Pick<SnapshotRequest, "whileStill"> & { checkpoint_id?: SnapshotRow["checkpoint_id"] };

/** What a snapshot has on disk; it is there by the row that is returned. Throws as supervisor.snapshot does. */
export async function takeFiles(
  { supervisors, places }: { supervisors: Supervisors; places: SnapshotPlaces },
  call: KeyCall,
  supervisor: Supervisor,
  { whileStill, checkpoint_id = null, ...about }: About,
): Promise<SnapshotRow> {
  const { row } = supervisor;
  const { files } = places.of({ ...about, room_uid: row.room_uid });
  const request = { snapshot_id: about.snapshot_id, mode: about.mode, into: files, ...(whileStill && { whileStill }) };
  const { paused_ms, size_bytes } = await supervisors.use(row.sandbox_id, () => supervisor.snapshot(request));
  const { env, egress_mode, egress_allowlist, guest_net, fabric_attached } = supervisor.row;
  return {
    ...about,
    room_uid: row.room_uid,
    org_id: row.org_id,
    agent_id: row.agent_id,
    sandbox_id: row.sandbox_id,
    parent: supervisor.row.snapshot_id,
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

/** Before anything stands still for it. What is measured is what it comes to at most. */
async function requireRoom(deps: SandboxDeps, { row, guest }: Supervisor, mode: SnapshotMode): Promise<void> {
  requireCount(countSnapshots(deps.database.queries, row.room_uid));
  await requireBytes(deps, row.org_id, mode === "full" && guest ? row.memory_mib * MIB : 0);
}

/** Throws disk_full, quota_exceeded where there is no room for so much of saved memory and drives. */
export async function requireBytes(deps: SandboxDeps, orgId: OrgId, bytes: number): Promise<void> {
  const free = freeBytes(deps.paths.data) - RESERVE_BYTES;
  const inMib = (some: number) => Math.max(0, Math.floor(some / MIB));
  if (bytes > free) {
    throw new ServiceError("disk_full", {
      detail: `The host's disk has ${inMib(free)} MiB free for snapshots; this may need ${inMib(bytes)} MiB.`,
    });
  }
  const { hard_cap_bytes } = deps.quota.capsOf(orgId).drive;
  const used = await deps.driveUsed(orgId);
  if (used + bytes <= hard_cap_bytes) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The organization's drives and snapshots take ${used} bytes, and this may need ${bytes} more; its plan's cap is ${hard_cap_bytes}.`,
    details: { limit: "drive_bytes", used, cap: hard_cap_bytes },
    hint: "Delete snapshots (roomd snapshot delete) or files of drives.",
  });
}

export function requireCount(held: number): void {
  if (held < MAX_SNAPSHOTS) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The room has ${held} snapshots, which is as many as a room may have.`,
    details: { limit: "snapshots", used: held, cap: MAX_SNAPSHOTS },
    hint: "Delete one first (roomd snapshot delete).",
  });
}
