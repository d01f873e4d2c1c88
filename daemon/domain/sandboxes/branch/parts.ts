/**
 * Common parts of operations on all sandboxes of a room: which sandboxes take part, the paths of their snapshots, and how results are
 * reported.
 */
import type { SandboxRecord, SandboxState } from "../../../../shared/api/sandboxes.ts";
import type { SandboxId, SnapshotId } from "../../../../shared/ids.ts";
import type { RoomTarget } from "../../../core/call/room-target.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import type { Completions } from "../executions/completion.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { Waking } from "../lifecycle/waking.ts";
import { toSandboxRecord } from "../record.ts";
import { type Problem, problemOf } from "../snapshots/fork.ts";
import type { SnapshotPlace, SnapshotPlaces } from "../snapshots/place.ts";
import { roomSandboxes } from "../store.ts";
import type { SandboxRow } from "../table.ts";

export interface BranchParts {
  deps: SandboxDeps;
  supervisors: Supervisors;
  places: SnapshotPlaces;
  ends: Pick<Completions, "rolledBack">;
  waking: Pick<Waking, "message">;
}

export const AT_REST = ["running", "paused", "hibernated"] as const satisfies SandboxState[];

export const isAtRest = (state: SandboxState) => (AT_REST as readonly SandboxState[]).includes(state);

/** The record of a sandbox in a checkpoint. */
export interface CutSandbox
  extends Pick<
    SandboxRow,
    "agent_id" | "labels" | "idle_timeout_seconds" | "on_idle" | "wake_on" | "max_duration_seconds"
  > {
  sandbox_id: SandboxId;
  snapshot_id: SnapshotId;
  was: (typeof AT_REST)[number];
}

/** Result for one sandbox: its current record, the problem, or both. */
export interface ForkedItem {
  agent_id: string;
  sandbox: SandboxRecord | null;
  problem: Problem | null;
}

/** Supervisors of the sandboxes that take part. Throws guest_unreachable, and invalid_state that names the sandboxes in a transition. */
export async function supervised(
  { deps, supervisors }: BranchParts,
  { room_uid }: Pick<RoomTarget, "room_uid">,
): Promise<Supervisor[]> {
  for (const { sandbox_id } of roomSandboxes(deps.database.queries, room_uid)) {
    await supervisors.get(sandbox_id)?.adopted();
  }
  const rows = roomSandboxes(deps.database.queries, room_uid).filter(({ state }) => state !== "failed");
  const moving = rows.filter(({ state }) => !isAtRest(state));
  if (moving.length > 0) {
    throw new ServiceError("invalid_state", {
      detail: `Sandboxes of the room are in transition: ${moving.map(({ agent_id, state }) => `${agent_id} is ${state}`).join(", ")}.`,
      details: { agents: moving.map(({ agent_id }) => agent_id), allowed_states: AT_REST },
      hint: "Retry once they are in one of the allowed states.",
      retryAfterSeconds: 5,
    });
  }
  return rows.map(({ sandbox_id, agent_id }) => {
    const supervisor = supervisors.get(sandbox_id);
    if (supervisor?.guest || supervisor?.row.state === "hibernated") return supervisor;
    throw new ServiceError("guest_unreachable", {
      detail: `Sandbox ${agent_id} has just ended, or has not been adopted yet.`,
    });
  });
}

export function placeOf(
  { places }: Pick<BranchParts, "places">,
  { room_uid }: Pick<RoomTarget, "room_uid">,
  snapshot_id: SnapshotId,
): SnapshotPlace {
  return places.of({ room_uid, snapshot_id, mode: "full" });
}

/** Protects these snapshots from deletion until `work` is done. */
export function usingAll<T>(places: SnapshotPlaces, ids: readonly SnapshotId[], work: () => Promise<T>): Promise<T> {
  return ids.reduce<() => Promise<T>>((inner, id) => () => places.use(id, inner), work)();
}

export function itemOf({ deps }: Pick<BranchParts, "deps">, { room_id }: RoomTarget, { row }: Supervisor): ForkedItem {
  const sandbox = toSandboxRecord(row, room_id, deps.portsOf(row.sandbox_id));
  return { agent_id: row.agent_id, sandbox, problem: null };
}

export function failedItem({ deps }: Pick<BranchParts, "deps">, agent_id: string, error: unknown): ForkedItem {
  if (!(error instanceof ServiceError)) {
    deps.log.error("failed to return a sandbox of a room to its former state", {
      agent_id,
      error: describeError(error),
    });
  }
  return { agent_id, sandbox: null, problem: problemOf(error) };
}
