/**
 * Takes snapshots of all sandboxes of a room at one instant:
 *
 *     sandboxes in standby are resumed for it
 *     → each waits at the first rendezvous, running, until its previous work is done
 *     → all are paused ⇒ their memory is saved ⇒ they wait at the second, while the room's other state is taken
 *     → all continue ⇒ the result is kept, as a whole or not at all → those from standby are paused again
 *
 * A sandbox in a state transition is not awaited: the cut is refused. A failed sandbox takes no part.
 */
import { rm } from "node:fs/promises";
import type { SandboxState } from "../../../../shared/api/sandboxes.ts";
import { type CheckpointId, newId, type SnapshotId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { type RoomTarget, requireActive } from "../../../core/call/room-target.ts";
import { within } from "../../../core/concurrency/published.ts";
import { Rendezvous } from "../../../core/concurrency/rendezvous.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { SnapshotRow } from "../snapshots/table.ts";
import { noteParent, takeFiles } from "../snapshots/take.ts";
import { isCalled } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { type BranchParts, type CutSandbox, placeOf, supervised, usingAll } from "./parts.ts";

const MAX_MS = {
  /** Previous work of a sandbox: another snapshot, a merge of its layers. */
  ready: 60_000,
  /** A sandbox that is paused for longer would be missed by its peers. */
  saved: 120_000,
  taken: 60_000,
};

export interface Cut<T> {
  sandboxes: CutSandbox[];
  snapshots: SnapshotRow[];
  /** Result of `whileStill`, taken while all were paused. */
  still: T;
  /** The longest pause of one sandbox. */
  paused_ms: number;
}

export interface RoomCut<T, R> {
  checkpoint_id: CheckpointId;
  created_at: string;
  name: string | null;
  /** Called once all are paused; an error aborts the cut. */
  whileStill(): Promise<T>;
  /** Called once all have continued; if it throws, nothing of the cut remains. */
  keep(cut: Cut<T>): Promise<R>;
}

export function cutRoom<T, R>(parts: BranchParts, call: KeyCall, room: RoomTarget, request: RoomCut<T, R>): Promise<R> {
  const { deps, supervisors } = parts;
  return supervisors.holding(room.room_uid, async () => {
    requireActive(deps.currentRoom(room.room_uid));
    const all = await supervised(parts, room);
    const asleep = all.filter(({ row }) => row.state === "paused");
    // Keeps all in use: no idle action pauses or ends a sandbox during the cut.
    return await inUse(parts, all, async () => {
      const woken: Woken[] = [];
      try {
        for (const supervisor of asleep) {
          const { last_transition_at: paused_at } = supervisor.row;
          await supervisor.resume();
          woken.push({ supervisor, paused_at });
        }
        const resumed = woken.map(({ supervisor }) => supervisor);
        return await cutNow(parts, call, room, request, { all: await supervised(parts, room), woken: resumed });
      } finally {
        await Promise.all(woken.map((each) => putBack(parts, each)));
      }
    });
  });
}

function inUse<T>({ supervisors }: BranchParts, all: readonly Supervisor[], work: () => Promise<T>): Promise<T> {
  return all.reduce<() => Promise<T>>(
    (inner, { row }) =>
      () =>
        supervisors.use(row.sandbox_id, inner),
    work,
  )();
}

/** A sandbox that was in standby before the cut. */
interface Woken {
  supervisor: Supervisor;
  paused_at: string;
}

/** Returns it to standby unless a call uses it. A message that arrived after the pause wakes it; an older unread message does not. */
async function putBack({ deps, supervisors, waking }: BranchParts, { supervisor, paused_at }: Woken): Promise<void> {
  const { sandbox_id } = supervisor.row;
  await supervisor
    .standby(undefined, undefined, () => supervisor.row.state === "running" && supervisors.usesOf(sandbox_id) <= 1)
    .catch((error: unknown) =>
      deps.log.warn("failed to return a sandbox to standby", { sandbox_id, error: describeError(error) }),
    );
  if (isCalled(deps.database.queries, supervisor.row, paused_at)) waking.message(sandbox_id);
}

async function cutNow<T, R>(
  parts: BranchParts,
  call: KeyCall,
  room: RoomTarget,
  { checkpoint_id, created_at, name, whileStill, keep }: RoomCut<T, R>,
  { all, woken }: { all: readonly Supervisor[]; woken: readonly Supervisor[] },
): Promise<R> {
  const { places, deps } = parts;
  const [ready, saved] = [new Rendezvous(all.length), new Rendezvous(all.length)];
  const callOff = (reason: unknown) => {
    ready.callOff(reason);
    saved.callOff(reason);
  };
  const take = async ({ supervisor, snapshot_id }: Taking): Promise<SnapshotRow> => {
    const about = { snapshot_id, mode: "full", name, created_at, expires_at: null, checkpoint_id } as const;
    const arriveAt = (meeting: Rendezvous) => (signal: AbortSignal) =>
      meeting.arrive(signal, () => endedMeanwhile(supervisor));
    try {
      const meetings = { whenReady: arriveAt(ready), whileStill: arriveAt(saved) };
      return await takeFiles(parts, call, supervisor, { ...about, ...meetings });
    } catch (error) {
      callOff(error);
      throw error;
    }
  };
  const takings = all.map(
    (supervisor): Taking => ({
      ...{ supervisor, snapshot_id: newId("snap") },
      was: woken.includes(supervisor) ? "paused" : supervisor.row.state,
    }),
  );
  const ids = takings.map(({ snapshot_id }) => snapshot_id);
  return await usingAll(places, ids, async () => {
    try {
      const taking = takings.map(take);
      const still = await together(ready, saved, whileStill).catch((error: unknown) => {
        callOff(error);
        return Promise.reject(error);
      });
      const snapshots = await allOf(taking);
      const kept = await keep({
        ...{ snapshots, still, sandboxes: takings.map(cutOf) },
        paused_ms: Math.max(0, ...snapshots.map(({ paused_ms }) => paused_ms)),
      });
      for (const { supervisor, snapshot_id } of takings) await noteParent(deps, supervisor, snapshot_id);
      return kept;
    } catch (error) {
      for (const id of ids) await rm(placeOf(parts, room, id).files.directory, { recursive: true, force: true });
      throw error;
    }
  });
}

async function together<T>(ready: Rendezvous, saved: Rendezvous, whileStill: () => Promise<T>): Promise<T> {
  await within(ready.all, MAX_MS.ready, "preparing its sandboxes");
  ready.release();
  await within(saved.all, MAX_MS.saved, "saving its sandboxes");
  const still = await within(whileStill(), MAX_MS.taken, "copying the room's state while its sandboxes are paused");
  saved.release();
  return still;
}

/** Waits until all have settled; throws the first error. */
async function allOf<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works);
  return await Promise.all(works);
}

interface Taking {
  supervisor: Supervisor;
  snapshot_id: SnapshotId;
  /** Before the cut. */
  was: SandboxState;
}

function endedMeanwhile({ row: { agent_id } }: Supervisor): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `Sandbox ${agent_id} was ended while the room was being saved.`,
    details: { agents: [agent_id] },
    hint: "Try again.",
  });
}

function cutOf({ supervisor: { row }, snapshot_id, was }: Taking): CutSandbox {
  const { sandbox_id, agent_id, labels, idle_timeout_seconds, on_idle, wake_on, max_duration_seconds }: SandboxRow =
    row;
  return {
    ...{ sandbox_id, agent_id, labels, idle_timeout_seconds, on_idle, wake_on, max_duration_seconds, snapshot_id },
    was: was === "paused" || was === "hibernated" ? was : "running",
  };
}
