/** Pauses a sandbox (standby). daemon/host/guest/standby.ts pauses the guest. */
import { sandboxStandby } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget } from "../find.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";

export function makeStandby(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxStandby, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (_call, _input, { room, row }) => {
      requireActive(room);
      requireState(row, ["running"]);
      const supervisor = supervisors.get(row.sandbox_id);
      if (!supervisor) throw new ServiceError("guest_unreachable");
      const changed = await supervisors.use(row.sandbox_id, () => supervisor.standby());
      return { outcome: "paused", body: toSandboxRecord(changed, room.room_id, deps.portsOf(changed.sandbox_id)) };
    },
  });
}
