/** Changes a sandbox's labels, idle action and expiry. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { LIVE_STATES, sandboxUpdate } from "../../../../shared/api/sandboxes.ts";
import { type Bound, bind, type RuleBreak } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { after, now } from "../../../core/clock.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget } from "../find.ts";
import { lifecycleOf, lifecycleRules } from "../lifecycle/lifecycle-settings.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";
import type { SandboxRow } from "../table.ts";

export function makeUpdate(deps: SandboxDeps, supervisors: Supervisors): Bound {
  return bind(sandboxUpdate, {
    find: (call, params) => findTarget(deps, call, params),
    rules: (input) => [...lifecycleRules(input), ...endRules(input)],
    run: async (_call, input, { room, row }) => {
      requireActive(room);
      requireState(row, LIVE_STATES);
      const change: Partial<SandboxRow> = {};
      if (input.labels !== undefined) change.labels = input.labels;
      Object.assign(change, lifecycleOf(input, row));
      if (input.max_duration_seconds !== undefined) {
        change.max_duration_seconds = input.max_duration_seconds;
        const seconds = input.max_duration_seconds;
        change.expires_at = seconds === null ? null : after(row.created_at, seconds);
      }
      if (input.expires_in_seconds !== undefined) Object.assign(change, endOf(row, input.expires_in_seconds));
      const supervisor = supervisors.get(row.sandbox_id);
      const changed = supervisor ? await supervisor.change(change) : row;
      supervisors.schedule(changed);
      return { outcome: "ok", body: toSandboxRecord(changed, room.room_id, deps.portsOf(changed.sandbox_id)) };
    },
  });
}

function endRules({ max_duration_seconds, expires_in_seconds }: Partial<InputOf<typeof sandboxUpdate>>): RuleBreak[] {
  if (max_duration_seconds === undefined || expires_in_seconds === undefined) return [];
  const message = "expires_in_seconds and max_duration_seconds both set the end: send only one of them.";
  return [{ field: "expires_in_seconds", code: "conflicting_fields", message, problem: "conflicting_fields" }];
}

/** An expiry this long after now, and max_duration_seconds accordingly, which copies of the sandbox inherit. */
function endOf({ created_at }: SandboxRow, seconds: number | null): Partial<SandboxRow> {
  if (seconds === null) return { expires_at: null, max_duration_seconds: null };
  const expires_at = after(now(), seconds);
  const duration = Math.ceil((Date.parse(expires_at) - Date.parse(created_at)) / 1000);
  return { expires_at, max_duration_seconds: duration };
}
