import type { SandboxDeps } from "../deps.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { Waking } from "../lifecycle/waking.ts";
import type { Ends } from "./completion.ts";
import type { Bounds } from "./limits.ts";

export interface ExecutionDeps {
  sandboxes: SandboxDeps;
  supervisors: Supervisors;
  waking: Waking;
  ends: Ends;
  bounds: Bounds;
  /** Aborted, with a ServiceError, when the daemon stops. */
  stopping: AbortSignal;
}
