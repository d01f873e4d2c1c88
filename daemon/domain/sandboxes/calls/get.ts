/** The call that shows a sandbox. */
import { sandboxGet } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget } from "../find.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";
import type { SandboxRow } from "../table.ts";

const isStarting = ({ state }: SandboxRow) => state === "creating" || state === "starting";

export function makeGet(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxGet, {
    find: (call, params) => findTarget(deps, call, params),
    run: async ({ signal }, { wait_ms = 0 }, { room, row }) => {
      const supervisor = wait_ms > 0 && isStarting(row) ? supervisors.get(row.sandbox_id) : undefined;
      const started = supervisor?.published.until((now) => !isStarting(now), wait_ms, signal);
      // The response has the state at the end of the wait, whichever it is.
      const seen = (await started?.catch(() => supervisor?.row)) ?? row;
      return { outcome: "ok", body: toSandboxRecord(seen, room.room_id, deps.portsOf(row.sandbox_id)) };
    },
  });
}
