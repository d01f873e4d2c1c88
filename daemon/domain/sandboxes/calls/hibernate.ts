/** Hibernates a sandbox. daemon/host/guest/save.ts saves the guest. */
import { type SandboxState, sandboxHibernate } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import { requireFreeDisk } from "../disk-room.ts";
import { findTarget } from "../find.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";
import type { SandboxRow } from "../table.ts";

const FROM = ["running", "paused"] as const satisfies SandboxState[];

export function makeHibernate(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxHibernate, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (_call, _input, { room, row }) => {
      requireActive(room);
      requireState(row, FROM);
      requireFreeDisk(deps, row.memory_mib);
      const supervisor = supervisors.get(row.sandbox_id);
      if (!supervisor) throw new ServiceError("guest_unreachable");
      const changed = await supervisors.use(row.sandbox_id, () => hibernated(supervisor));
      return { outcome: "hibernated", body: toSandboxRecord(changed, room.room_id, deps.portsOf(changed.sandbox_id)) };
    },
  });
}

/** Resumes a sandbox in standby first, as saving needs its agent; if saving fails, returns it to standby. */
async function hibernated(supervisor: Supervisor): Promise<SandboxRow> {
  requireState(supervisor.row, FROM);
  if (supervisor.row.state !== "paused") return await supervisor.hibernate();
  await supervisor.resume(undefined, "hibernate");
  try {
    return await supervisor.hibernate();
  } catch (error) {
    await supervisor.standby().catch(() => {});
    throw error;
  }
}
