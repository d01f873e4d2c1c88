/**
 * Makes a guest from saved state, its own or another's:
 *
 *     directories → machine → virtiofsd, vsock → the saved devices → load → its vsock → forget the saved state → resume → agent
 *
 * Until the saved state is forgotten a failure leaves it as it was, for a retry; from then on it is a guest as any other. A snapshot's
 * files are first linked into the sandbox's own directory, as if they had been saved there.
 */

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { runSteps } from "../../core/concurrency/undo-steps.ts";
import type { SavedPaths } from "../../core/config/paths.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import { restoredAs } from "../guest-link/connection.ts";
import { baseIn } from "../images/base.ts";
import { layerOver, layersBelow, layOverSnapshot, linkTo, tidyLayers } from "../images/layers.ts";
import { makeGuestDirectories } from "../isolation/directories.ts";
import { processorOf } from "../processor.ts";
import { endProcesses } from "./leftovers.ts";
import type { GuestHost, GuestImage, GuestPlan, StartPlan } from "./plan.ts";
import { newRecord, RecordFile } from "./record.ts";
import { keepSaved, type RestoredAs, readSaved, removeMemory, type Saved } from "./saved-state.ts";
import { connectionOf, type Guest, guestOf, undoReporter } from "./start.ts";
import { hostFor, RESTORE_STEPS, type StartParts } from "./steps.ts";

/** A guest that is to be restored: its machine is part of its saved state. */
export type RestorePlan = Omit<StartPlan, "image">;

/**
 * `onSpent` is called just before the guest resumes. If `signal` aborts, the guest's processes are killed, whatever they are doing. Throws
 * StepError; snapshot_incompatible.
 */
export async function restoreGuest(
  on: GuestHost,
  plan: RestorePlan,
  { startMode, onSpent }: { startMode: Guest["start_mode"]; onSpent(): void },
  signal: AbortSignal,
): Promise<Guest> {
  const saved = await readSaved(plan.paths);
  requireFits(saved);
  const host = hostFor(on, saved.machine, saved.vsock ?? undefined);
  const known = { ...saved.known, generation: saved.machine.agent_generation };
  const parts: StartParts = {
    plan: {
      ...plan,
      image: { ...imageOf(saved, plan.paths), snapshot_memory: join(plan.paths.directory, saved.memory ?? "") },
    },
    host,
    signal,
    disk: saved.disk,
    saved: { vsock: saved.vsock !== null, qemu_version: saved.qemu_version },
    onSpent,
    record: new RecordFile(plan.paths.processes, newRecord(plan.sandbox_id, "saved")),
    connection: connectionOf(host, plan, known, 0, restoredAs(saved.restored_as ?? "resumed")),
  };
  // The steps wait for these processes and for nothing else; without them they fail, and are undone.
  const giveUp = () => void endProcesses(plan.paths).catch(() => {});
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const timings = await runSteps(RESTORE_STEPS, parts, undoReporter(host, plan.sandbox_id), signal);
    // The guest runs: files that cannot be removed now are removed with it.
    await tidy(plan.paths, saved.disk).catch((error: unknown) =>
      host.log.warn("failed to remove former layers", { sandbox_id: plan.sandbox_id, error: describeError(error) }),
    );
    return guestOf(parts, startMode, timings);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

/**
 * Puts a snapshot's files into a sandbox's directory, as if they had been saved there: once this resolves they are the sandbox's state.
 * `id` names its disk, and was not used for one of its layers before. Throws snapshot_incompatible.
 */
export async function adoptSnapshot(
  { isolation }: Pick<GuestHost, "isolation">,
  { sandbox_id, paths }: Pick<GuestPlan, "sandbox_id" | "paths">,
  from: SavedPaths,
  as: RestoredAs,
  id: string,
): Promise<void> {
  const { format: _format, ...saved } = await requireRestorable(from);
  const users = isolation.usersOf(sandbox_id);
  await makeGuestDirectories(paths, users);
  const layers = layersBelow(from.directory, saved.disk);
  const disk = layerOver(id);
  // Under a separate name: the sandbox's own saved memory may still be there.
  const memory = `memory-${id}`;
  try {
    await layOverSnapshot({ from, layers }, paths, id, users?.qemu.uid ?? 0);
    await linkTo(join(from.directory, saved.memory ?? ""), join(paths.directory, memory));
    await keepSaved(paths, { ...saved, disk, memory, restored_as: as });
  } catch (error) {
    const kept = await readSaved(paths).catch(() => null);
    // The state was recorded, whatever failed afterwards.
    if (kept?.disk === disk) return;
    for (const name of [memory, disk]) await rm(join(paths.directory, name), { force: true });
    throw error;
  }
}

/** Removes obsolete files once the guest runs over another disk. */
async function tidy(paths: SavedPaths, disk: string): Promise<void> {
  await tidyLayers(paths.directory, disk);
  await removeMemory(paths);
}

/** Saved state of a snapshot from which sandboxes can be made here. Throws snapshot_incompatible. */
export async function requireRestorable(from: SavedPaths): Promise<Saved> {
  const saved = await readSaved(from);
  requireFits(saved);
  if (saved.restores) return saved;
  throw new ServiceError("snapshot_incompatible", {
    detail: "The agent in it is older than this roomd, and cannot become another sandbox.",
    details: { differs: "agent" },
  });
}

/** Image that boots from a snapshot's disk. */
export async function imageOfDisk(from: SavedPaths): Promise<GuestImage> {
  const saved = await readSaved(from);
  return { ...imageOf(saved, from), over: { from, layers: layersBelow(from.directory, saved.disk) } };
}

/** Under KVM a guest requires the processor that it was saved on. */
function requireFits({ processor, machine }: Pick<Saved, "processor" | "machine">): void {
  const here = processorOf();
  if (machine.hardware.acceleration !== "kvm" || processor === here) return;
  throw new ServiceError("snapshot_incompatible", {
    detail: "It was saved on another processor than this host has.",
    details: { differs: "processor", saved: processor, here },
  });
}

function imageOf({ machine }: Saved, { base }: Pick<SavedPaths, "base">): GuestImage {
  const { kernel, initramfs, root, disk, empty } = baseIn(base);
  return {
    ...machine,
    kernel,
    initramfs,
    root,
    cold_overlay: empty,
    snapshot_disk: disk,
    snapshot_overlay: empty,
    snapshot_memory: null,
    snapshot_vcpus: 1,
    start_ms: 0,
  };
}
