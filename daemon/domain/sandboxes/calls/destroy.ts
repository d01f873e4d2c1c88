/** Destroys a sandbox, in any state. */
import { sandboxDestroy } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget } from "../find.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";

export function makeDestroy(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxDestroy, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (_call, _input, { room, row }) => {
      const supervisor = supervisors.get(row.sandbox_id) ?? supervisors.add(row, room, null);
      await supervisor.destroy("user_requested");
      return {
        outcome: "destroyed",
        body: {
          agent_id: row.agent_id,
          sandbox_id: row.sandbox_id,
          guest_cid: row.guest_cid,
          state: "destroyed" as const,
        },
      };
    },
  });
}
