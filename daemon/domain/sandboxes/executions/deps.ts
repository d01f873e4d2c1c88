import type { SandboxDeps } from "../deps.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { Waking } from "../lifecycle/waking.ts";
import type { Completions } from "./completion.ts";
import type { ExecutionLimits } from "./limits.ts";

export interface ExecutionDeps {
  sandboxes: SandboxDeps;
  supervisors: Supervisors;
  waking: Waking;
  ends: Completions;
  bounds: ExecutionLimits;
  /** Aborted, with a ServiceError, when the daemon stops. */
  stopping: AbortSignal;
}
