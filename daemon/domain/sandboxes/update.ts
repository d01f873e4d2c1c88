/** Changes a sandbox's labels and timeouts. */
import { sandboxUpdate } from "../../../shared/api/sandboxes.ts";
import { after } from "../../core/clock.ts";
import { type Bound, bind } from "../../core/operation.ts";
import { requireActive } from "../../core/room-target.ts";
import type { SandboxDeps } from "./deps.ts";
import { findTarget } from "./find.ts";
import { lifecycleOf, lifecycleRules } from "./lifecycle.ts";
import { toSandboxRecord } from "./record.ts";
import { requireState } from "./state.ts";
import type { Supervisors } from "./supervisors.ts";
import type { SandboxRow } from "./table.ts";

export function makeUpdate(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxUpdate, {
    find: (call, params) => findTarget(deps, call, params),
    rules: (input) => lifecycleRules(input),
    run: async (_call, input, { room, row }) => {
      requireActive(room);
      requireState(row, [
        "creating",
        "starting",
        "running",
        "pausing",
        "paused",
        "hibernating",
        "hibernated",
        "resuming",
      ]);
      const change: Partial<SandboxRow> = {};
      if (input.labels !== undefined) change.labels = input.labels;
      Object.assign(change, lifecycleOf(input, row));
      if (input.max_duration_seconds !== undefined) {
        change.max_duration_seconds = input.max_duration_seconds;
        const seconds = input.max_duration_seconds;
        change.expires_at = seconds === null ? null : after(row.created_at, seconds);
      }
      const supervisor = supervisors.get(row.sandbox_id);
      const changed = supervisor ? await supervisor.change(change) : row;
      supervisors.schedule(changed);
      return { outcome: "ok", body: toSandboxRecord(changed, room.room_id, deps.portsOf(changed.sandbox_id)) };
    },
  });
}
