/** Idle action of a sandbox and its wake reasons: input rules and defaults. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { type sandboxUpdate, WAKE_REASONS } from "../../../../shared/api/sandboxes.ts";
import type { RuleBreak } from "../../../core/call/operation.ts";
import type { SandboxRow } from "../table.ts";

interface LifecycleInput {
  idle_timeout_seconds?: number | null | undefined;
  lifecycle?: InputOf<typeof sandboxUpdate>["lifecycle"];
}
type Lifecycle = Pick<SandboxRow, "idle_timeout_seconds" | "on_idle" | "wake_on">;

/** idle_timeout_seconds and lifecycle.idle_after_seconds are the same setting. */
export function lifecycleRules({ idle_timeout_seconds, lifecycle }: LifecycleInput): RuleBreak[] {
  if (idle_timeout_seconds === undefined || lifecycle?.idle_after_seconds === undefined) return [];
  return [
    {
      field: "lifecycle.idle_after_seconds",
      code: "conflicting_fields",
      message: "lifecycle.idle_after_seconds and idle_timeout_seconds are the same setting: send only one of them.",
      problem: "conflicting_fields",
    },
  ];
}

/** Settings of a new sandbox, or of the one in `row` after a change. By default all reasons wake it; a given list is exact. */
export function lifecycleOf({ idle_timeout_seconds, lifecycle = {} }: LifecycleInput, row?: Lifecycle): Lifecycle {
  const { idle_after_seconds = idle_timeout_seconds, on_idle = row?.on_idle ?? "destroy", wake_on } = lifecycle;
  return {
    idle_timeout_seconds: idle_after_seconds === undefined ? (row?.idle_timeout_seconds ?? null) : idle_after_seconds,
    on_idle,
    wake_on: wake_on === undefined ? (row?.wake_on ?? [...WAKE_REASONS]) : [...new Set(wake_on)],
  };
}
