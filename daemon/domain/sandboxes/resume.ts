/** Resumes a sandbox in standby. How the guest is resumed is in daemon/host/guest/standby.ts. */
import { sandboxResume } from "../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../core/operation.ts";
import { requireActive } from "../../core/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { SandboxDeps } from "./deps.ts";
import { findTarget } from "./find.ts";
import { toSandboxRecord } from "./record.ts";
import { requireState } from "./state.ts";
import type { Supervisors } from "./supervisors.ts";

export function makeResume(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxResume, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (call, _input, { room, row }) => {
      requireActive(room);
      requireState(row, ["paused"]);
      deps.credits.admit(deps.database.queries, row.org_id);
      const supervisor = supervisors.get(row.sandbox_id);
      if (!supervisor) throw new ServiceError("guest_unreachable");
      const pausedMs = Date.now() - Date.parse(row.last_transition_at);
      call.audit.details = { paused_seconds: Math.round(pausedMs / 1000) };
      const changed = await supervisors.use(row.sandbox_id, () => supervisor.resume());
      return { outcome: "resumed", body: toSandboxRecord(changed, room.room_id, deps.portsOf(changed.sandbox_id)) };
    },
  });
}
