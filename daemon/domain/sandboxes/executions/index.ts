/** Operations on executions, one verb each, and their common parts. */
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { Waking } from "../lifecycle/waking.ts";
import type { Completions } from "./completion.ts";
import type { ExecutionDeps } from "./deps.ts";
import { makeExec } from "./exec.ts";
import { makeExecutionLimits } from "./limits.ts";
import { makeGet, makeList } from "./list.ts";
import { makeEnd, makeSignal } from "./signal.ts";
import { makeStart } from "./start.ts";
import { makeStdin } from "./stdin.ts";
import { makeStream } from "./stream.ts";

export function makeExecutions(sandboxes: SandboxDeps, supervisors: Supervisors, waking: Waking, ends: Completions) {
  const stopping = new AbortController();
  const deps: ExecutionDeps = {
    sandboxes,
    supervisors,
    waking,
    ends,
    bounds: makeExecutionLimits(),
    stopping: stopping.signal,
  };
  const verbs = [makeExec, makeStart, makeList, makeGet, makeStream, makeStdin, makeSignal, makeEnd];
  return {
    operations: verbs.map((verb) => verb(deps)),
    /** Ends every stream of output with `shutting_down`. */
    stop: () => stopping.abort(new ServiceError("shutting_down")),
  };
}
