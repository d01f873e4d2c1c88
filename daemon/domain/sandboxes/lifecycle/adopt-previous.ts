/**
 * Recovery of the previous daemon's sandboxes: guests are adopted, all in parallel, starting sandboxes end as failed, and transitions to
 * rest or to the end are completed. The daemon serves calls at the same time: a call to such a sandbox waits for its recovery. Sandboxes
 * saved at the host's shutdown are resumed afterwards (host-start.ts).
 */
import { describeError } from "../../../core/service-error.ts";
import { endUnrecorded, guestProcesses } from "../../../host/guest/leftovers.ts";
import type { ProcessRecord } from "../../../host/process.ts";
import type { SandboxDeps } from "../deps.ts";
import { unfinished } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import type { Supervisors } from "./supervisors.ts";

/**
 * `answering` settles once the service answers requests: recovery of many guests must not delay that. Returns the rows as found, before
 * their recovery.
 */
export async function recover(
  deps: SandboxDeps,
  supervisors: Supervisors,
  answering: Promise<unknown>,
): Promise<SandboxRow[]> {
  const processes = await guestProcesses(deps.paths.guests);
  const found = unfinished(deps.database.queries);
  for (const row of found) {
    takeUp(deps, supervisors, row, { serving: processes.get(row.sandbox_id), after: answering });
  }
  return found;
}

/** Continues a sandbox that has a row and no supervisor; `serving`: processes found for it; `after` is awaited first. */
export function takeUp(
  deps: SandboxDeps,
  supervisors: Supervisors,
  row: SandboxRow,
  { serving = [], after }: { serving?: readonly ProcessRecord[] | undefined; after?: Promise<unknown> } = {},
): void {
  const supervisor = supervisors.add(row, deps.currentRoom(row.room_uid), null);
  const work = async () => {
    switch (row.state) {
      case "creating":
      case "starting":
        return await supervisor.lost("host_restart", `The daemon was restarted while the sandbox was ${row.state}.`);
      case "running":
      case "pausing":
      case "paused":
      case "hibernating":
      case "hibernated":
      case "resuming":
        await Promise.all([endUnrecorded(deps.paths.sandbox(row.sandbox_id), serving), supervisor.adopt(after)]);
        return;
      case "destroying":
        return await supervisors.endUnasked(row.sandbox_id, row.exit_cause ?? "host_restart");
      case "failed":
        return await supervisor.free();
      case "destroyed":
        return;
    }
  };
  work().catch((error: unknown) =>
    deps.log.error("failed to recover a sandbox", { sandbox_id: row.sandbox_id, error: describeError(error) }),
  );
}
