/** Owns what a new daemon does with the sandboxes of the one before it: their processes end, and they fail by name. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { now } from "../core/clock.ts";
import type { SandboxPaths } from "../core/paths.ts";
import { endProcess, type ProcessRecord } from "../host/process.ts";
import type { SandboxDeps } from "./index.ts";
import { unfinished, updateSandbox } from "./store.ts";

interface Processes {
  qemu: ProcessRecord | null;
  virtiofsd: ProcessRecord | null;
  vsock: ProcessRecord | null;
}

export async function recover(deps: SandboxDeps): Promise<void> {
  const { database, paths, log } = deps;
  const rows = unfinished(database.queries);
  await Promise.all(
    rows.map(async (row) => {
      await sweep(paths.sandbox(row.sandbox_id));
      const destroying = row.state === "destroying";
      if (destroying) await rm(paths.sandbox(row.sandbox_id).directory, { recursive: true, force: true });
      await database.commit((queries) =>
        updateSandbox(queries, row.sandbox_id, {
          state: destroying ? "destroyed" : "failed",
          status_reason: "host_restart",
          status_message: "The daemon was restarted.",
          last_transition_at: now(),
          exit_cause: row.exit_cause ?? "host_restart",
          exit_at: row.exit_at ?? now(),
          stopped_at: row.stopped_at ?? now(),
          cid_held: false,
        }),
      );
      log.info("sandbox ended by restart", { sandbox_id: row.sandbox_id, was: row.state });
    }),
  );
  // A guest of which there is no row: a template's clone, or what a crash left between two steps.
  const known = new Set(rows.map((row) => row.sandbox_id as string));
  for (const name of existsSync(paths.guests) ? readdirSync(paths.guests) : []) {
    if (!known.has(name)) await sweep(paths.sandbox(name));
  }
}

/** Ends a guest's processes, as its record names them, and removes its sockets and disk. */
async function sweep(own: SandboxPaths): Promise<void> {
  for (const process of recordedProcesses(own)) await endProcess(process);
  await rm(own.runtime, { recursive: true, force: true });
  await rm(own.overlay, { force: true });
}

function recordedProcesses(own: SandboxPaths): ProcessRecord[] {
  try {
    const { qemu, virtiofsd, vsock } = JSON.parse(readFileSync(join(own.processes), "utf8")) as Processes;
    return [qemu, virtiofsd, vsock].filter((process) => process !== null);
  } catch {
    return [];
  }
}
