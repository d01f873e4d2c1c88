/** The operations on files of sandboxes, and their shared state. */
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { Waking } from "../lifecycle/waking.ts";
import { makeDelete, makeMkdir, makeMove } from "./change.ts";
import { makeListFiles, makeStatFile } from "./look.ts";
import { makeGetFile, makePutFile } from "./transfer.ts";
import { type FileDeps, makePlaces } from "./verb.ts";
import { makeWatch } from "./watch.ts";

export function makeFiles(sandboxes: SandboxDeps, supervisors: Supervisors, waking: Waking) {
  const stopping = new AbortController();
  const deps: FileDeps = { sandboxes, supervisors, waking, places: makePlaces(), stopping: stopping.signal };
  const verbs = [makePutFile, makeGetFile, makeListFiles, makeStatFile, makeMkdir, makeMove, makeDelete, makeWatch];
  return {
    operations: verbs.map((verb) => verb(deps)),
    /** Ends all watches with the error `shutting_down`. */
    stop: () => stopping.abort(new ServiceError("shutting_down")),
  };
}
