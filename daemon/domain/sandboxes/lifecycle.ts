/** Owns what becomes of a sandbox that is idle, and what wakes one that rests: how it is asked for, and how it is shown. */
import type { InputOf } from "../../../shared/api/contract.ts";
import type { sandboxUpdate, WakeReason } from "../../../shared/api/sandboxes.ts";
import type { RuleBreak } from "../../core/operation.ts";
import type { SandboxRow } from "./table.ts";

/** What wakes a sandbox that rests when it is idle, where nobody says: a call that uses it, and a message to its agent. */
const WAKES: readonly WakeReason[] = ["api", "message"];

interface Asked {
  idle_timeout_seconds?: number | null | undefined;
  lifecycle?: InputOf<typeof sandboxUpdate>["lifecycle"];
}
type Lifecycle = Pick<SandboxRow, "idle_timeout_seconds" | "on_idle" | "wake_on">;

/** Both say after which time it is idle. */
export function lifecycleRules({ idle_timeout_seconds, lifecycle }: Asked): RuleBreak[] {
  if (idle_timeout_seconds === undefined || lifecycle?.idle_after_seconds === undefined) return [];
  return [
    {
      field: "lifecycle.idle_after_seconds",
      code: "conflicting_fields",
      message: "lifecycle.idle_after_seconds and idle_timeout_seconds are the same: send one of them.",
      problem: "conflicting_fields",
    },
  ];
}

/** Of a new sandbox, or of one that is so far as in `row`. */
export function lifecycleOf({ idle_timeout_seconds, lifecycle = {} }: Asked, row?: Lifecycle): Lifecycle {
  const { idle_after_seconds = idle_timeout_seconds, on_idle = row?.on_idle ?? "destroy", wake_on } = lifecycle;
  const rests = on_idle !== "destroy" && on_idle !== row?.on_idle;
  return {
    idle_timeout_seconds: idle_after_seconds === undefined ? (row?.idle_timeout_seconds ?? null) : idle_after_seconds,
    on_idle,
    wake_on: wake_on === undefined ? (rests ? [...WAKES] : (row?.wake_on ?? [])) : [...new Set(wake_on)],
  };
}
