/**
 * Reconciler: compares the rows with the host, at the start and every minute, and repairs differences: processes, sockets, disks and
 * directories that belong to no sandbox; sandboxes with a transition that takes too long, failed ones that still hold resources, guests
 * that could not be adopted yet, and guests without their QEMU. On a healthy host it changes nothing. It never races a create: for a
 * sandbox with a supervisor it goes through that, and machines in the pool are left alone.
 */
import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { loopTime, Pieces } from "../../../core/loop/index.ts";
import { describeError } from "../../../core/service-error.ts";
import { guestProcesses, hasLeftovers } from "../../../host/guest/leftovers.ts";
import { isAlive, type ProcessRecord } from "../../../host/process.ts";
import type { SandboxDeps } from "../deps.ts";
import { undestroyed } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { takeUp } from "./adopt-previous.ts";
import { overdueFor } from "./state.ts";
import type { Supervisor } from "./supervisor.ts";
import type { Supervisors } from "./supervisors.ts";

/** One pass; resolves once each difference is repaired, or its failure logged. */
export async function reconcile(deps: SandboxDeps, supervisors: Supervisors): Promise<void> {
  const processes = await guestProcesses(deps.paths.guests);
  const rows = undestroyed(deps.database.queries);
  const known = new Set<string>(rows.map((row) => row.sandbox_id));
  const found = new Set([...processes.keys(), ...namesIn(deps.paths.guests), ...namesIn(deps.paths.sandboxes)]);
  const coming = new Set(namesIn(deps.paths.arrivals).flatMap((room) => namesIn(deps.paths.arriving(room).sandboxes)));
  // A process found by the scan may have exited since, with its sandbox.
  const isLeft = (name: string) => processes.get(name)?.some(isAlive) ?? true;
  const isStray = (name: string) =>
    !known.has(name) && !coming.has(name) && !isUnderWay(deps, supervisors, name) && isLeft(name);
  const strays = [...found].filter(isStray);
  const unsettled = (error: unknown) => deps.log.error("not reconciled", { error: describeError(error) });
  const work = strays.map((name) => sweep(deps, supervisors, name).catch(unsettled));
  // Synchronously: later their rows may have changed.
  const supervised = rows.flatMap((row) => {
    const supervisor = supervisors.get(row.sandbox_id);
    if (!supervisor) takeUpUnlessEnded(deps, supervisors, row, processes.get(row.sandbox_id));
    return supervisor ?? [];
  });
  const pieces = new Pieces(loopTime, "host", "reconcile");
  for (const supervisor of supervised) {
    const turn = pieces.next();
    if (turn) await turn;
    const { sandbox_id } = supervisor.row;
    if (supervisors.get(sandbox_id) !== supervisor) continue;
    work.push(setRight(deps, supervisors, supervisor, processes.get(sandbox_id)).catch(unsettled));
  }
  await Promise.all(work);
}

/** Before it has a row, or without one: its supervisor or the pool ends it. */
function isUnderWay(deps: SandboxDeps, supervisors: Supervisors, sandboxId: string): boolean {
  return supervisors.get(sandboxId) !== undefined || deps.pool.holds(sandboxId);
}

/** A sandbox that failed before the daemon was restarted has its logs, and needs no supervisor. */
function takeUpUnlessEnded(
  deps: SandboxDeps,
  supervisors: Supervisors,
  row: SandboxRow,
  serving: readonly ProcessRecord[] | undefined,
): void {
  if (row.state !== "failed" || isLeftBehind(deps, row, serving)) takeUp(deps, supervisors, row, { serving });
}

/** Whether leftovers of the sandbox remain. */
function isLeftBehind(
  deps: SandboxDeps,
  { sandbox_id, cid_held }: SandboxRow,
  serving: readonly ProcessRecord[] | undefined,
): boolean {
  return cid_held || serving !== undefined || hasLeftovers(deps.paths.sandbox(sandbox_id));
}

async function setRight(
  deps: SandboxDeps,
  supervisors: Supervisors,
  supervisor: Supervisor,
  serving: readonly ProcessRecord[] | undefined,
): Promise<void> {
  // The supervisor's row: the database already shows changes that are not published yet.
  const { row } = supervisor;
  const { sandbox_id, state } = row;
  if (state === "failed") {
    if (isLeftBehind(deps, row, serving) && !supervisor.busy) await supervisor.free();
    return;
  }
  // Processes found before it was saved may have exited since.
  if (state === "hibernated" && serving?.some(isAlive) && !supervisor.busy) {
    return await supervisors.endLeft(sandbox_id);
  }
  if (supervisor.isLeft && state !== "destroying") {
    if (!supervisor.busy) await supervisor.adopt();
    return;
  }
  // Time without a daemon does not count.
  if (supervisor.isAdopting) return;
  const late = overdueFor(state, supervisor.inStateMs);
  if (late !== null) {
    deps.log.warn("sandbox overdue", { sandbox_id, state, late_ms: Math.round(late) });
    if (state === "destroying") return await supervisors.endUnasked(sandbox_id, row.exit_cause ?? "host_restart");
    return await supervisor.overdue(`The sandbox was ${state} for too long.`);
  }
  const qemu = supervisor.guest?.machine.process;
  if (qemu && !isAlive(qemu)) await supervisor.lost("vmm_crash", "The virtual machine has ended.");
}

/** Removes leftovers of no sandbox: a pooled machine of a killed daemon, or the remainder of a crash between two steps. */
async function sweep(deps: SandboxDeps, supervisors: Supervisors, sandboxId: string): Promise<void> {
  await supervisors.freeRemains(sandboxId);
  await rm(deps.paths.sandbox(sandboxId).directory, { recursive: true, force: true });
  deps.log.info("remains swept", { sandbox_id: sandboxId });
  deps.onSwept(sandboxId);
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
