/** Measures a sandbox from outside, and its clock from inside. */
import { sandboxMetrics } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { diskUse } from "../../../host/guest/saved-state.ts";
import { clockSkewMs } from "../../../host/guest-link/clock.ts";
import { usageOfProcess } from "../../../host/usage.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget } from "../find.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisor } from "../lifecycle/supervisor.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";

const LINK_DEADLINE_MS = 5_000;
/** Use of a hibernated sandbox. */
const NOTHING = { cpu_seconds: 0, resident_bytes: 0 };

export function makeMetrics(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxMetrics, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (_call, _input, { row }) => {
      requireState(row, ["running", "pausing", "paused", "hibernating", "hibernated", "resuming"]);
      const supervisor = supervisors.get(row.sandbox_id);
      await supervisor?.adopted();
      const { pid } = supervisor?.guest?.machine.process ?? {};
      const sleeps = row.state === "hibernated";
      if (!supervisor || (pid === undefined && !sleeps)) throw new ServiceError("guest_unreachable");
      const { cpu_seconds, resident_bytes } = pid === undefined ? NOTHING : usageOfProcess(pid);
      return {
        outcome: "ok",
        body: {
          cpu: { vcpu_count: row.vcpu_count, used_seconds: cpu_seconds },
          memory: { memory_mib: row.memory_mib, resident_bytes },
          disk: { used_bytes: diskUse(deps.paths.sandbox(row.sandbox_id)) },
          clock_skew_ms: row.state === "running" ? await skewOf(supervisor) : null,
          at: now(),
        },
      };
    },
  });
}

async function skewOf(supervisor: Supervisor): Promise<number | null> {
  const link = await supervisor.link(LINK_DEADLINE_MS).catch((cause: unknown) => {
    if (cause instanceof ServiceError) throw cause;
    throw new ServiceError("guest_unreachable", { cause });
  });
  return await clockSkewMs(link).catch(() => null);
}
