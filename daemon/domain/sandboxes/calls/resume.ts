/** Resumes a sandbox from standby or hibernation. daemon/host/guest/{standby,restore}.ts resume the guest. */
import { sandboxResume } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { monotonicMs, wallMs } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { SandboxDeps } from "../deps.ts";
import { requireDrive } from "../drive-held.ts";
import { findTarget } from "../find.ts";
import { makingRoom, requireMemoryAgain } from "../lifecycle/admission.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";
import type { ResumeReason } from "../stats.ts";
import { countedWith } from "../store.ts";
import type { SandboxRow } from "../table.ts";

export function makeResume(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxResume, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (call, _input, { room, row }) => {
      requireActive(room);
      requireState(row, ["paused", "hibernated"]);
      const supervisor = supervisors.get(row.sandbox_id);
      if (!supervisor) throw new ServiceError("guest_unreachable");
      const pausedMs = Math.max(0, wallMs() - Date.parse(row.last_transition_at));
      call.audit.details = { paused_seconds: Math.round(pausedMs / 1000), from: row.state };
      const requireQuota = (queries: Queries, added: Added) => void deps.quota.admit(queries, call, added);
      const changed = await resumeSupervised(deps, supervisors, supervisor, { reason: "resume", requireQuota });
      return { outcome: "resumed", body: toSandboxRecord(changed, room.room_id, deps.portsOf(changed.sandbox_id)) };
    },
  });
}

type Added = ReturnType<typeof countedWith>;
type RequireQuota = (queries: Queries, added: Added) => void;

interface Resuming {
  /** Why it is resumed. */
  reason: ResumeReason;
  /** Runs within the transaction that reserves the sandbox's memory. Throws quota_exceeded. */
  requireQuota: RequireQuota;
}

/** Throws invalid_state, quota_exceeded, insufficient_capacity, drive_full, and errors of the supervisor. */
export async function resumeSupervised(
  deps: SandboxDeps,
  supervisors: Supervisors,
  supervisor: Supervisor,
  { reason, requireQuota }: Resuming,
): Promise<SandboxRow> {
  const { row } = supervisor;
  const startedAt = monotonicMs();
  deps.credits.admit(deps.database.queries, row.org_id);
  if (row.state === "hibernated") requireDrive(deps, row);
  const admit = admitAgain(supervisors, row, requireQuota);
  const resumed = await supervisors.use(row.sandbox_id, () =>
    makingRoom(deps.pool, row.memory_mib, () => supervisor.resume(admit)),
  );
  supervisors.outcomes.noteResumed(row.state, reason, (monotonicMs() - startedAt) / 1000);
  return resumed;
}

/** Check within the transaction that reserves a hibernated sandbox's memory again. Throws quota_exceeded, insufficient_capacity. */
export function admitAgain(supervisors: Supervisors, row: SandboxRow, requireQuota: RequireQuota) {
  return (queries: Queries) => {
    requireQuota(queries, countedWith(queries, row, false));
    requireMemoryAgain(queries, row, supervisors.growth());
  };
}
