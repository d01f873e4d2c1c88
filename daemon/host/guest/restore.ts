/**
 * Owns making a guest of what was saved of it:
 *
 *   directories → machine → virtiofsd, vsock → the drive's device → load → vsock → forget what was saved → go on → agent
 *
 * Until that is forgotten a failure leaves it as it was, to be tried again; from then on it is a guest as any other.
 */

import { ServiceError } from "../../core/service-error.ts";
import { runSteps } from "../../core/steps.ts";
import { restoredAs } from "../guest-link/connection.ts";
import { firstPortOf } from "../guest-link/transports/choose.ts";
import { baseIn } from "../images/base.ts";
import { processorOf } from "../processor.ts";
import type { GuestHost, GuestImage, StartPlan } from "./plan.ts";
import { newRecord, RecordFile } from "./record.ts";
import { endProcesses } from "./remains.ts";
import { readSaved, type Saved } from "./saved.ts";
import { connectionOf, type Guest, guestOf, undoReporter } from "./start.ts";
import { RESTORE_STEPS, type StartParts } from "./steps.ts";

/** A guest that is to be restored: what its machine is, is saved with it. */
export type RestorePlan = Omit<StartPlan, "image">;

/** When `signal` gives it up its processes are killed, whatever they are doing. Throws StepError; snapshot_incompatible. */
export async function restoreGuest(
  on: GuestHost,
  plan: RestorePlan,
  startMode: Guest["start_mode"],
  signal: AbortSignal,
): Promise<Guest> {
  const saved = await readSaved(plan.paths);
  requireFits(saved);
  const transport = on.transportOf(on.transport.kind, firstPortOf(saved.machine.agent_generation));
  const host = { ...on, transport };
  const parts: StartParts = {
    plan: { ...plan, image: imageOf(saved, plan) },
    host,
    signal,
    record: new RecordFile(plan.paths.processes, newRecord(plan.sandbox_id, "saved")),
    connection: connectionOf(host, plan, saved.known, 0, restoredAs("resumed")),
  };
  // The steps wait for these processes and for nothing else, and undo what they can then no longer do.
  const giveUp = () => void endProcesses(plan.paths).catch(() => {});
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const timings = await runSteps(RESTORE_STEPS, parts, undoReporter(host, plan.sandbox_id), signal);
    return guestOf(parts, startMode, timings);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

/** Under KVM a guest has the processor that it was saved on. */
function requireFits({ processor, machine }: Saved): void {
  const here = processorOf();
  if (machine.hardware.acceleration !== "kvm" || processor === here) return;
  throw new ServiceError("snapshot_incompatible", {
    detail: "It was saved on another processor than this host has.",
    details: { differs: "processor", saved: processor, here },
  });
}

function imageOf({ machine }: Saved, { paths }: RestorePlan): GuestImage {
  const { kernel, initramfs, root, disk, empty } = baseIn(paths.base);
  return {
    ...machine,
    kernel,
    initramfs,
    root,
    cold_overlay: empty,
    snapshot_disk: disk,
    snapshot_overlay: empty,
    snapshot_memory: paths.memory,
    start_ms: 0,
  };
}
