/**
 * Saves or ends a room's sandboxes when the room leaves this host:
 *
 *     the other host can load it ──▶ hibernated (room_moved), and moves along; from standby it is not resumed automatically
 *     the other host cannot, or it has failed ──▶ ended (host_evacuated)
 *     the other host could, but it cannot be saved now ──▶ the room stays, unless the move is forced: then it ends
 */
import type { RoomUid, SandboxId } from "../../../../shared/ids.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import { requireFreeDisk } from "../disk-room.ts";
import { ROOM_MOVED } from "../health.ts";
import { Gate } from "../lifecycle/admission.ts";
import { type Resting, STANDBY, save } from "../lifecycle/host-shutdown.ts";
import { shutdownPlanOf } from "../lifecycle/shutdown-plan.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { roomSandboxes } from "../store.ts";
import type { SandboxRow } from "../table.ts";

const MIB = 1024 ** 2;
const MOVED_MESSAGE = "Its room moves to another host. The sandbox is on disk, and is resumed there.";
const STANDBY_MESSAGE = "It was in standby when its room moved. The sandbox is on disk until it is resumed by a call.";
const RESTING: Resting = {
  reason: ROOM_MOVED,
  running: [ROOM_MOVED, MOVED_MESSAGE],
  standby: [STANDBY, STANDBY_MESSAGE],
};

export interface Leaving {
  /** Reasons that the other host cannot load sandboxes. */
  refused: ReadonlyMap<string, string>;
  isForced: boolean;
}

type LeaveParts = { deps: SandboxDeps; supervisors: Pick<Supervisors, "get" | "use" | "recordOf"> };

/** Before any guest is paused: checks that the disk has space for the saved guests. Throws disk_full. */
export function requireSpaceToSave({ deps, supervisors }: LeaveParts, roomUid: RoomUid): void {
  const ofRoom = roomSandboxes(deps.database.queries, roomUid);
  const own = new Set<string>(ofRoom.map(({ sandbox_id }) => sandbox_id));
  const all = shutdownPlanOf(deps.database.queries, deps.paths, Number.POSITIVE_INFINITY, supervisors.recordOf);
  const bytes = all.saved.reduce((sum, { row, needs_bytes }) => sum + (own.has(row.sandbox_id) ? needs_bytes : 0), 0);
  requireFreeDisk(deps, bytes / MIB);
}

/** Returns the hibernated sandboxes and the agents of ended ones. Throws invalid_state: the saved ones have to be resumed then. */
export async function leave(
  { deps, supervisors }: LeaveParts,
  roomUid: RoomUid,
  { refused, isForced }: Leaving,
  end: (rows: readonly SandboxRow[]) => Promise<void>,
): Promise<{ carried: SandboxId[]; ended: string[] }> {
  const gate = new Gate(deps.limits.concurrent_creates);
  const rows = roomSandboxes(deps.database.queries, roomUid);
  const never = new AbortController().signal;
  const savedOf = async (row: SandboxRow): Promise<string | null> => {
    const why = refused.get(row.sandbox_id);
    const supervisor = supervisors.get(row.sandbox_id);
    if (row.state === "failed" || row.state === "destroying" || !supervisor) return "it has no guest";
    if (why !== undefined) return why;
    const saving = () => supervisors.use(row.sandbox_id, () => save(deps, supervisor, RESTING));
    const outcome = await gate.through(row.org_id, saving, never);
    if (typeof outcome === "string" && !isForced && isSavable(supervisor)) throw notSaved(row, outcome);
    return supervisor.row.state === "hibernated" ? null : String(outcome);
  };
  const outcomes = await Promise.allSettled(rows.map(savedOf));
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  const toEnd = rows.filter((_, at) => (outcomes[at] as PromiseFulfilledResult<string | null>).value !== null);
  await end(toEnd);
  const carried = rows.filter((row) => !toEnd.includes(row)).map(({ sandbox_id }) => sandbox_id);
  return { carried, ended: toEnd.map(({ agent_id }) => agent_id) };
}

/** Whether it still runs, so that a retry is possible. */
const isSavable = ({ row }: Supervisor) => ["running", "paused", "resuming", "hibernating"].includes(row.state);

function notSaved({ agent_id }: SandboxRow, why: string): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `Sandbox ${agent_id} was not saved: ${why.replace(/\.$/, "")}. The room stays where it is.`,
    details: { agents: [agent_id] },
    hint: "Retry, or pass force: then such a sandbox ends.",
  });
}
