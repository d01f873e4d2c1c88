import type { SandboxDeps } from "../deps.ts";
import type { Supervisors } from "../supervisors.ts";
import type { Bounds } from "./bounds.ts";
import type { Ends } from "./ends.ts";

export interface ExecutionDeps {
  sandboxes: SandboxDeps;
  supervisors: Supervisors;
  ends: Ends;
  bounds: Bounds;
  /** Aborted, with a ServiceError, when the daemon stops. */
  stopping: AbortSignal;
}
