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
import { within } from "../../core/published.ts";
import { type RoomTarget, requireActive } from "../../core/room-target.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { requireRestorable } from "../../host/guest/restore.ts";
import { makingRoom } from "./admission.ts";
import { begin, requireComing } from "./create.ts";
import type { SandboxDeps } from "./deps.ts";
import type { Ends } from "./executions/ends.ts";
import { toSandboxRecord } from "./record.ts";
import { admitAgain } from "./resume.ts";
import { type Problem, problemOf, recordMade, withFreeCid } from "./snapshots/fork.ts";
import type { SnapshotPlaces } from "./snapshots/place.ts";
import { deleteSnapshot, getSnapshot, snapshotsOf } from "./snapshots/store.ts";
import type { SnapshotRow } from "./snapshots/table.ts";
import { keepSnapshots, requireSpace, takeFiles, type Used } from "./snapshots/take.ts";
import { roomSandboxes } from "./store.ts";
import type { Supervisor } from "./supervisor.ts";
import type { Supervisors } from "./supervisors.ts";
import type { SandboxRow } from "./table.ts";

const WAIT_MS = 150_000;
/** Whoever stands still longer is missed by others. */
const MOST_STILL_MS = 120_000;
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
  requireSpace(room: RoomTarget, bytes: number): Promise<Used>;
  /** Nothing is left of it where it throws, and all go on: invalid_state, guest_unreachable, disk_full, and what whileStill throws. */
  cut<T>(call: KeyCall, room: RoomTarget, request: CutRequest<T>): Promise<Cut<T>>;
  /** Those that a cut has, or could have. */
  guests(roomUid: RoomUid): SandboxId[];
  /** Within the transaction that makes the checkpoint, of which `bytes` are what else is kept. Throws quota_exceeded. */
  keep(queries: Queries, room: RoomTarget, used: Used, snapshots: readonly SnapshotRow[], bytes: number): void;
  /** Of a cut of which nothing comes. */
  discard(snapshots: readonly SnapshotRow[]): Promise<void>;
  /** Makes a sandbox of a snapshot in another room; resolves once it runs or there is a problem. */
  fork(call: KeyCall, room: RoomTarget, sandbox: CutSandbox, as: SandboxId): Promise<ForkedItem>;
  /**
   * Makes the room's sandboxes what they were: those that are still there are turned back, and `whileEnded` is called when none of them
   * runs; those made since are destroyed before, those gone since are made anew after, under the ids of `as`. Throws invalid_state where
   * one is on its way, snapshot_incompatible, before anything is done; and what whileEnded throws: they are turned back all the same.
   */
  turnBack(
    call: KeyCall,
    room: RoomTarget,
    sandboxes: readonly CutSandbox[],
    as: ReadonlyMap<string, SandboxId>,
    whileEnded: () => Promise<void>,
  ): Promise<ForkedItem[]>;
  /** Resolves once no sandbox of the room is on its way. */
  untilAtRest(roomUid: RoomUid): Promise<void>;
  /** Those that a room has now. */
  items(room: RoomTarget): ForkedItem[];
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
  ends: Pick<Ends, "rolledBack">;
}

const isAtRest = (state: SandboxState) => (AT_REST as readonly SandboxState[]).includes(state);

export function makeSandboxesBranch(parts: Parts): SandboxesBranch {
  const { deps, places } = parts;
  return {
    requireSpace: (room, bytes) => requireSpace(deps, room, supervised(parts, room), { mode: "full", bytes }),
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
    keep: (queries, room, used, snapshots, bytes) => keepSnapshots(deps, queries, room, used, snapshots, bytes),
    discard: async (snapshots) => {
      await Promise.all(snapshots.map((snapshot) => removeFiles(parts, snapshot)));
    },
    fork: (call, room, sandbox, as) => fork(parts, call, room, sandbox, as),
    turnBack: (call, room, sandboxes, as, whileEnded) => turnBack(parts, call, room, { sandboxes, as, whileEnded }),
    untilAtRest: async (roomUid) => {
      const isMoving = ({ state }: SandboxRow) => state !== "failed" && !isAtRest(state);
      for (const { sandbox_id } of roomSandboxes(deps.database.queries, roomUid)) {
        const published = parts.supervisors.get(sandbox_id)?.published;
        await published?.until((row) => !isMoving(row) || row.state === "destroyed", WAIT_MS).catch(() => {});
      }
    },
    items: (room) =>
      roomSandboxes(deps.database.queries, room.room_uid).flatMap(({ sandbox_id }) => {
        const supervisor = parts.supervisors.get(sandbox_id);
        return supervisor ? [itemOf(parts, room, supervisor)] : [];
      }),
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
      await Promise.all(snapshotIds.map((snapshot_id) => removeFiles(parts, { room_uid, snapshot_id })));
    },
  };
}

function placeOf(
  { places }: Pick<Parts, "places">,
  { room_uid }: Pick<RoomTarget, "room_uid">,
  snapshot_id: SnapshotId,
) {
  return places.of({ room_uid, snapshot_id, mode: "full" });
}

async function removeFiles(
  parts: Pick<Parts, "places">,
  { room_uid, snapshot_id }: Pick<SnapshotRow, "room_uid" | "snapshot_id">,
) {
  await rm(placeOf(parts, { room_uid }, snapshot_id).files.directory, { recursive: true, force: true });
}

/** Those that have a part in it. Throws invalid_state with those that are in its way. */
function supervised({ deps, supervisors }: Parts, { room_uid }: RoomTarget): Supervisor[] {
  const rows = roomSandboxes(deps.database.queries, room_uid).filter(({ state }) => state !== "failed");
  const moving = rows.filter(({ state }) => !isAtRest(state));
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
      const whileStill = (signal: AbortSignal) => meeting.arrive(signal, () => endedMeanwhile(supervisor));
      return await takeFiles(parts, call, supervisor, { ...about, whileStill });
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
      still = { value: await within(whileStill(), MOST_STILL_MS, "what is taken while the sandboxes stand still") };
      meeting.release();
    } catch (error) {
      still = { error };
      meeting.callOff(error);
    }
    const outcomes = await Promise.allSettled(taking);
    const failed = outcomes.find(({ status }) => status === "rejected");
    if ("error" in still || failed?.status === "rejected") {
      await Promise.all(ids.map((snapshot_id) => removeFiles(parts, { ...room, snapshot_id })));
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

function endedMeanwhile({ row: { agent_id } }: Supervisor): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `Sandbox ${agent_id} was ended while the room was being saved.`,
    details: { agents: [agent_id] },
    hint: "Try again.",
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
    await recordMade(deps, call, room, supervisor.row);
    await supervisor.published
      .until(({ state }) => state !== "creating" && state !== "starting", WAIT_MS)
      .catch(() => {});
    requireComing(deps, supervisor.row);
    await restAgain({ deps }, supervisor, sandbox);
    return itemOf({ deps }, room, supervisor);
  } catch (error) {
    return failedItem({ deps }, agent_id, error);
  }
}

/** One that did not run at the cut does not run now. What keeps it from that is no problem of the room's. */
async function restAgain({ deps }: Pick<Parts, "deps">, supervisor: Supervisor, { was }: CutSandbox): Promise<void> {
  if (was === "running" || supervisor.row.state !== "running") return;
  const rest = was === "paused" ? supervisor.standby() : supervisor.hibernate();
  await rest.catch((error: unknown) =>
    deps.log.warn("sandbox goes on", { sandbox_id: supervisor.row.sandbox_id, error: describeError(error) }),
  );
}

function itemOf({ deps }: Pick<Parts, "deps">, { room_id }: RoomTarget, { row }: Supervisor): ForkedItem {
  const sandbox = toSandboxRecord(row, room_id, deps.portsOf(row.sandbox_id));
  return { agent_id: row.agent_id, sandbox, problem: null };
}

function failedItem({ deps }: Pick<Parts, "deps">, agent_id: string, error: unknown): ForkedItem {
  if (!(error instanceof ServiceError)) {
    deps.log.error("sandbox of a room not made", { agent_id, error: describeError(error) });
  }
  return { agent_id, sandbox: null, problem: problemOf(error) };
}

interface TurnBack {
  sandboxes: readonly CutSandbox[];
  as: ReadonlyMap<string, SandboxId>;
  whileEnded(): Promise<void>;
}

async function turnBack(
  parts: Parts,
  call: KeyCall,
  room: RoomTarget,
  { sandboxes, as, whileEnded }: TurnBack,
): Promise<ForkedItem[]> {
  const { deps, supervisors } = parts;
  const items = new Map<string, ForkedItem>();
  await supervisors.holding(room.room_uid, async () => {
    const present = supervised(parts, room);
    for (const { snapshot_id } of sandboxes) await requireRestorable(placeOf(parts, room, snapshot_id).files);
    const kept = sandboxes.flatMap((sandbox) => {
      const supervisor = present.find(({ row }) => row.sandbox_id === sandbox.sandbox_id);
      return supervisor ? [{ sandbox, supervisor }] : [];
    });
    for (const row of roomSandboxes(deps.database.queries, room.room_uid)) {
      if (kept.some(({ sandbox }) => sandbox.sandbox_id === row.sandbox_id)) continue;
      await (supervisors.get(row.sandbox_id) ?? supervisors.add(row, room, null)).destroy("user_requested");
    }
    const meeting = new Meeting(kept.length);
    const turning = kept.map(async ({ sandbox, supervisor }) => {
      const item = await turnOne(parts, call, room, { sandbox, supervisor, meeting });
      if (item) items.set(sandbox.sandbox_id, item);
    });
    try {
      await meeting.all;
      await whileEnded();
    } finally {
      meeting.release();
      await Promise.all(turning);
    }
  });
  const gone = sandboxes.filter(({ sandbox_id }) => !items.has(sandbox_id));
  await Promise.all(
    gone.map(async (sandbox) => {
      const made = await fork(parts, call, room, sandbox, as.get(sandbox.sandbox_id) ?? newId("sbx"));
      items.set(sandbox.sandbox_id, made);
    }),
  );
  return sandboxes.flatMap(({ sandbox_id }) => items.get(sandbox_id) ?? []);
}

/** Null where it could not be turned back, and is destroyed: it is to be made anew. */
async function turnOne(
  parts: Parts,
  call: KeyCall,
  room: RoomTarget,
  { sandbox, supervisor, meeting }: { sandbox: CutSandbox; supervisor: Supervisor; meeting: Meeting },
): Promise<ForkedItem | null> {
  const { deps, supervisors, ends } = parts;
  const { snapshot_id, sandbox_id, agent_id } = sandbox;
  const never = new AbortController().signal;
  let hasEnded = false;
  const onEnded = async () => {
    hasEnded = true;
    await ends
      .rolledBack(sandbox_id)
      .catch((error: unknown) =>
        deps.log.warn("ends of commands not recorded", { sandbox_id, error: describeError(error) }),
      );
    await meeting.arrive(never);
  };
  try {
    const from = placeOf(parts, room, snapshot_id);
    const { memory_mib } = supervisor.row;
    const admit = admitAgain(supervisors, supervisor.row, (queries) => {
      deps.quota.admit(queries, call, { memory_mib });
    });
    const turn = () => supervisor.rollback(from, { snapshot_id }, { admit, onEnded });
    await supervisors.use(sandbox_id, () => makingRoom(deps.pool, memory_mib, turn));
    await restAgain({ deps }, supervisor, sandbox);
    return itemOf({ deps }, room, supervisor);
  } catch (error) {
    if (hasEnded) return failedItem({ deps }, agent_id, error);
    deps.log.warn("sandbox not turned back, it is made anew", { sandbox_id, error: describeError(error) });
    await supervisor.destroy("user_requested").catch(() => {});
    void meeting.arrive(never);
    return null;
  }
}
