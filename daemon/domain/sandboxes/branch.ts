/**
 * Owns how the sandboxes of a room branch with it. At the cut all stand still together, each with its memory saved, while what else
 * belongs to that instant is taken; then all go on. In another room a sandbox is made of each snapshot.
 *
 *   running       stands still, its memory is saved, goes on
 *   in standby    goes on for that and is put back
 *   hibernates    stays so: what was saved of it is shared
 *
 * A sandbox on its way from one state to another is not waited for: the cut is refused. One that has failed has no part in it.
 */
import { rm } from "node:fs/promises";
import type { SandboxRecord, SandboxState } from "../../../shared/api/sandboxes.ts";
import { type CheckpointId, newId, type RoomUid, type SandboxId, type SnapshotId } from "../../../shared/ids.ts";
import { Meeting } from "../../core/meeting.ts";
import { type KeyCall, trialCall } from "../../core/operation.ts";
import { type RoomTarget, requireActive } from "../../core/room-target.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { begin, requireComing } from "./create.ts";
import type { SandboxDeps } from "./deps.ts";
import { toSandboxRecord } from "./record.ts";
import { type Problem, problemOf, withFreeCid } from "./snapshots/fork.ts";
import type { SnapshotPlaces } from "./snapshots/place.ts";
import { countSnapshots, deleteSnapshot, getSnapshot, insertSnapshot, snapshotsOf } from "./snapshots/store.ts";
import type { SnapshotRow } from "./snapshots/table.ts";
import { requireBytes, requireCount, takeFiles } from "./snapshots/take.ts";
import { roomSandboxes } from "./store.ts";
import type { Supervisor } from "./supervisor.ts";
import type { Supervisors } from "./supervisors.ts";
import type { SandboxRow } from "./table.ts";

const MIB = 1024 ** 2;
const WAIT_MS = 150_000;
const AT_REST = ["running", "paused", "hibernated"] as const satisfies SandboxState[];

/** A sandbox as a checkpoint has it. */
export interface CutSandbox
  extends Pick<
    SandboxRow,
    "agent_id" | "labels" | "idle_timeout_seconds" | "on_idle" | "wake_on" | "max_duration_seconds"
  > {
  sandbox_id: SandboxId;
  snapshot_id: SnapshotId;
  was: (typeof AT_REST)[number];
}

export interface Cut<T> {
  sandboxes: CutSandbox[];
  snapshots: SnapshotRow[];
  /** What was taken while all stood still. */
  still: T;
  /** The longest that one of them stood still. */
  paused_ms: number;
}

export interface CutRequest<T> {
  checkpoint_id: CheckpointId;
  created_at: string;
  name: string | null;
  /** Called once all stand still; what it throws ends the cut. */
  whileStill(): Promise<T>;
}

export interface ForkedItem {
  agent_id: string;
  sandbox: SandboxRecord | null;
  problem: Problem | null;
}

export interface SandboxesBranch {
  /** Throws quota_exceeded, disk_full, invalid_state where a cut now could not be. `bytes` are what else is to be kept. */
  requireRoom(room: RoomTarget, bytes: number): Promise<void>;
  /** Nothing is left of it where it throws, and all go on: invalid_state, guest_unreachable, disk_full, and what whileStill throws. */
  cut<T>(call: KeyCall, room: RoomTarget, request: CutRequest<T>): Promise<Cut<T>>;
  /** Those that a cut has, or could have. */
  guests(roomUid: RoomUid): SandboxId[];
  /** Within the transaction that makes the checkpoint. */
  keep(queries: Queries, snapshots: readonly SnapshotRow[]): void;
  /** Of a cut of which nothing comes. */
  discard(snapshots: readonly SnapshotRow[]): Promise<void>;
  /** Makes a sandbox of a snapshot in another room; resolves once it runs or there is a problem. */
  fork(call: KeyCall, room: RoomTarget, sandbox: CutSandbox, as: SandboxId): Promise<ForkedItem>;
  /** Nobody deletes these snapshots meanwhile. */
  use<T>(snapshotIds: readonly SnapshotId[], work: () => Promise<T>): Promise<T>;
  /** Within the transaction that removes the checkpoint. Throws snapshot_in_use. */
  forget(queries: Queries, checkpointId: CheckpointId): void;
  /** What they take on disk. */
  bytesOf(queries: Queries, checkpointId: CheckpointId): number;
  remove(roomUid: RoomUid, snapshotIds: readonly SnapshotId[]): Promise<void>;
}

interface Parts {
  deps: SandboxDeps;
  supervisors: Supervisors;
  places: SnapshotPlaces;
}

export function makeSandboxesBranch(parts: Parts): SandboxesBranch {
  const { deps, places } = parts;
  const removeFiles = async (place: Pick<SnapshotRow, "room_uid" | "snapshot_id">) => {
    await rm(places.of({ ...place, mode: "full" }).files.directory, { recursive: true, force: true });
  };
  return {
    requireRoom: async (room, bytes) => {
      const { queries } = deps.database;
      const taken = supervised(parts, room);
      requireCount(countSnapshots(queries, room.room_uid) + Math.max(0, taken.length - 1));
      const memory = taken
        .filter(({ row }) => row.state !== "hibernated")
        .reduce((sum, { row }) => sum + row.memory_mib, 0);
      await requireBytes(deps, room.org_id, memory * MIB + bytes);
    },
    cut: (call, room, request) =>
      parts.supervisors.holding(room.room_uid, async () => {
        requireActive(deps.currentRoom(room.room_uid));
        const asleep = supervised(parts, room).filter(({ row }) => row.state === "paused");
        const woken: Supervisor[] = [];
        try {
          for (const supervisor of asleep) {
            await supervisor.resume();
            woken.push(supervisor);
          }
          return await cutNow(parts, call, room, request, woken);
        } finally {
          await Promise.all(woken.map((supervisor) => putBack(parts, supervisor)));
        }
      }),
    guests: (roomUid) => roomSandboxes(deps.database.queries, roomUid).map(({ sandbox_id }) => sandbox_id),
    keep: (queries, snapshots) => {
      for (const row of snapshots) insertSnapshot(queries, row);
    },
    discard: async (snapshots) => {
      await Promise.all(snapshots.map(removeFiles));
    },
    fork: (call, room, sandbox, as) => fork(parts, call, room, sandbox, as),
    use: (snapshotIds, work) => usingAll(places, snapshotIds, work),
    forget: (queries, checkpointId) => {
      for (const { snapshot_id } of snapshotsOf(queries, checkpointId)) {
        places.requireUnused(snapshot_id);
        deleteSnapshot(queries, snapshot_id);
      }
    },
    bytesOf: (queries, checkpointId) =>
      snapshotsOf(queries, checkpointId).reduce((sum, { size_bytes }) => sum + size_bytes, 0),
    remove: async (room_uid, snapshotIds) => {
      await Promise.all(snapshotIds.map((snapshot_id) => removeFiles({ room_uid, snapshot_id })));
    },
  };
}

/** Those that have a part in it. Throws invalid_state with those that are in its way. */
function supervised({ deps, supervisors }: Parts, { room_uid }: RoomTarget): Supervisor[] {
  const rows = roomSandboxes(deps.database.queries, room_uid).filter(({ state }) => state !== "failed");
  const moving = rows.filter(({ state }) => !(AT_REST as readonly SandboxState[]).includes(state));
  if (moving.length > 0) {
    throw new ServiceError("invalid_state", {
      detail: `Sandboxes of the room are on their way: ${moving.map(({ agent_id, state }) => `${agent_id} is ${state}`).join(", ")}.`,
      details: { agents: moving.map(({ agent_id }) => agent_id), allowed_states: AT_REST },
      hint: "Try again once they are there.",
      retryAfterSeconds: 5,
    });
  }
  return rows.map(({ sandbox_id, agent_id }) => {
    const supervisor = supervisors.get(sandbox_id);
    if (!supervisor) throw new ServiceError("guest_unreachable", { detail: `Sandbox ${agent_id} has just ended.` });
    return supervisor;
  });
}

async function putBack({ deps }: Parts, supervisor: Supervisor): Promise<void> {
  await supervisor.standby().catch((error: unknown) =>
    deps.log.warn("sandbox not put back into standby", {
      sandbox_id: supervisor.row.sandbox_id,
      error: describeError(error),
    }),
  );
}

async function cutNow<T>(
  parts: Parts,
  call: KeyCall,
  room: RoomTarget,
  { checkpoint_id, created_at, name, whileStill }: CutRequest<T>,
  woken: readonly Supervisor[],
): Promise<Cut<T>> {
  const { places } = parts;
  const all = supervised(parts, room);
  const meeting = new Meeting(all.length);
  const take = async (supervisor: Supervisor, snapshot_id: SnapshotId): Promise<SnapshotRow> => {
    const about = { snapshot_id, mode: "full", name, created_at, expires_at: null, checkpoint_id } as const;
    try {
      return await takeFiles(parts, call, supervisor, { ...about, whileStill: (signal) => meeting.arrive(signal) });
    } catch (error) {
      meeting.callOff(error);
      throw error;
    }
  };
  const ids = all.map(() => newId("snap"));
  const was = all.map((supervisor) => (woken.includes(supervisor) ? "paused" : supervisor.row.state));
  return await usingAll(places, ids, async () => {
    const taking = all.map((supervisor, at) => take(supervisor, ids[at] ?? newId("snap")));
    let still: { value: T } | { error: unknown };
    try {
      await meeting.all;
      still = { value: await whileStill() };
      meeting.release();
    } catch (error) {
      still = { error };
      meeting.callOff(error);
    }
    const outcomes = await Promise.allSettled(taking);
    const failed = outcomes.find(({ status }) => status === "rejected");
    if ("error" in still || failed?.status === "rejected") {
      const files = ids.map((snapshot_id) => places.of({ room_uid: room.room_uid, snapshot_id, mode: "full" }).files);
      await Promise.all(files.map(({ directory }) => rm(directory, { recursive: true, force: true })));
      throw "error" in still ? still.error : failed?.status === "rejected" ? failed.reason : still;
    }
    const snapshots = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    return {
      snapshots,
      sandboxes: all.map(({ row }, at) => cutOf(row, ids[at] ?? newId("snap"), was[at] ?? row.state)),
      still: still.value,
      paused_ms: Math.max(0, ...snapshots.map(({ paused_ms }) => paused_ms)),
    };
  });
}

function usingAll<T>(places: SnapshotPlaces, ids: readonly SnapshotId[], work: () => Promise<T>): Promise<T> {
  return ids.reduce<() => Promise<T>>((inner, id) => () => places.use(id, inner), work)();
}

function cutOf(row: SandboxRow, snapshot_id: SnapshotId, was: SandboxState): CutSandbox {
  const { sandbox_id, agent_id, labels, idle_timeout_seconds, on_idle, wake_on, max_duration_seconds } = row;
  return {
    ...{ sandbox_id, agent_id, labels, idle_timeout_seconds, on_idle, wake_on, max_duration_seconds, snapshot_id },
    was: was === "paused" || was === "hibernated" ? was : "running",
  };
}

async function fork(
  { deps, supervisors }: Parts,
  call: KeyCall,
  room: RoomTarget,
  sandbox: CutSandbox,
  sandbox_id: SandboxId,
): Promise<ForkedItem> {
  const { agent_id, snapshot_id } = sandbox;
  try {
    const snapshot = getSnapshot(deps.database.queries, snapshot_id);
    if (!snapshot) throw new ServiceError("snapshot_not_found");
    const own = { ...trialCall(call.caller), request_id: call.request_id };
    const { labels, on_idle, wake_on, idle_timeout_seconds, max_duration_seconds } = sandbox;
    const wanted = {
      ...{ agent_id, snapshot_id, sandbox_id, labels, memory_mib: snapshot.memory_mib },
      lifecycle: { idle_after_seconds: idle_timeout_seconds, on_idle, wake_on },
      ...(max_duration_seconds === null ? {} : { max_duration_seconds }),
    };
    const source = { template: null, snapshot };
    const { supervisor } = await withFreeCid(deps, (guest_cid) =>
      begin(deps, supervisors, own, { ...wanted, guest_cid }, room, source),
    );
    await supervisor.published
      .until(({ state }) => state !== "creating" && state !== "starting", WAIT_MS)
      .catch(() => {});
    requireComing(deps, supervisor.row);
    const record = toSandboxRecord(supervisor.row, room.room_id, deps.portsOf(sandbox_id));
    return { agent_id, sandbox: record, problem: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) {
      deps.log.error("sandbox of a forked room not made", { agent_id, error: describeError(error) });
    }
    return { agent_id, sandbox: null, problem: problemOf(error) };
  }
}
