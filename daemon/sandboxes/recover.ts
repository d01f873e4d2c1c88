/**
 * Owns what a new daemon does with the sandboxes of the one before it: running guests are taken over, everything else
 * ends, by name, and is freed. Taking over goes on while the service answers already: a call to such a guest waits for it.
 */
import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { now } from "../core/clock.ts";
import type { SandboxPaths } from "../core/paths.ts";
import { endRecorded, readProcesses } from "../host/guest/adopt.ts";
import type { SandboxDeps } from "./index.ts";
import { notDestroyed, unfinished, updateSandbox } from "./store.ts";
import type { Supervisors } from "./supervisors.ts";
import type { SandboxRow } from "./table.ts";

export async function recover(deps: SandboxDeps, supervisors: Supervisors): Promise<void> {
  const rows = unfinished(deps.database.queries);
  for (const row of rows.filter(({ state }) => state === "running")) {
    takeOver(deps, supervisors, row).catch((error: unknown) =>
      deps.log.error("sandbox not recovered", { sandbox_id: row.sandbox_id, error: String(error) }),
    );
  }
  await Promise.all(rows.filter(({ state }) => state !== "running").map((row) => endUnfinished(deps, row)));
  await sweepUnknown(deps);
}

async function takeOver(deps: SandboxDeps, supervisors: Supervisors, row: SandboxRow): Promise<void> {
  const supervisor = supervisors.add(row, deps.currentRoom(row.room_uid), null);
  const refused = await supervisor.adopt();
  if (refused === null) return;
  await sweep(deps.paths.sandbox(row.sandbox_id));
  await supervisor.lost("host_restart", `The guest could not be taken over after a restart: ${refused}.`);
}

/** Sandboxes that were on their way up or down when the daemon ended. */
async function endUnfinished({ database, paths, log }: SandboxDeps, row: SandboxRow): Promise<void> {
  await sweep(paths.sandbox(row.sandbox_id));
  const destroying = row.state === "destroying";
  if (destroying) await rm(paths.sandbox(row.sandbox_id).directory, { recursive: true, force: true });
  await database.commit((queries) =>
    updateSandbox(queries, row.sandbox_id, {
      state: destroying ? "destroyed" : "failed",
      status_reason: "host_restart",
      status_message: `The daemon was restarted while the sandbox was ${row.state}.`,
      last_transition_at: now(),
      exit_cause: row.exit_cause ?? "host_restart",
      exit_at: row.exit_at ?? now(),
      stopped_at: row.stopped_at ?? now(),
      cid_held: false,
    }),
  );
  log.info("sandbox ended by restart", { sandbox_id: row.sandbox_id, was: row.state });
}

/** Guests of which there is no row: the pool's, a template's clone, or what a crash left between two steps. */
async function sweepUnknown({ paths, database }: SandboxDeps): Promise<void> {
  const known = notDestroyed(database.queries);
  const places = [paths.guests, paths.sandboxes].filter((place) => existsSync(place));
  const unknown = new Set(places.flatMap((place) => readdirSync(place)).filter((name) => !known.has(name)));
  await Promise.all(
    [...unknown].map(async (name) => {
      await sweep(paths.sandbox(name));
      await rm(paths.sandbox(name).directory, { recursive: true, force: true });
    }),
  );
}

/** Ends a guest's processes, as its record names them, and removes its sockets and disk. */
async function sweep(own: SandboxPaths): Promise<void> {
  await endRecorded(readProcesses(own.processes));
  await rm(own.runtime, { recursive: true, force: true });
  await rm(own.overlay, { force: true });
}
