import type { SandboxDeps } from "../deps.ts";
import type { Supervisors } from "../supervisors.ts";
import type { Waking } from "../waking.ts";
import type { Bounds } from "./bounds.ts";
import type { Ends } from "./ends.ts";

export interface ExecutionDeps {
  sandboxes: SandboxDeps;
  supervisors: Supervisors;
  waking: Waking;
  ends: Ends;
  bounds: Bounds;
  /** Aborted, with a ServiceError, when the daemon stops. */
  stopping: AbortSignal;
}
