/**
 * Owns how a guest comes up:
 *
 *   launch   directories → disk → machine → load (from a snapshot)
 *   join     devices → plug → resume → agent
 *
 * The first half may have been done ahead (pool.ts). A snapshot that does not load is followed by a cold boot;
 * whatever fails, nothing is left behind but the logs.
 */
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import type { Published } from "../../core/published.ts";
import { runSteps, StepError, undoSteps } from "../../core/steps.ts";
import { GuestConnection } from "../guest-link/connection.ts";
import type { Machine } from "../machine/machine.ts";
import { DRIVE_TAG } from "../virtiofs/share.ts";
import { type Health, PartsKeeper } from "./parts.ts";
import type { GuestHost, GuestPlan, LaunchPlan } from "./plan.ts";
import type { DrivePlace } from "./serve-drive.ts";
import { allSteps, type GuestParts, JOIN_STEPS, type LaunchMode, type LaunchParts, launchSteps } from "./steps.ts";

/** A guest that is up. */
export interface Guest {
  plan: GuestPlan;
  connection: GuestConnection;
  machine: Machine;
  start_mode: "pool" | "snapshot" | "cold";
  /** Milliseconds per stage, in fields ending `_ms`. */
  boot: Record<string, number>;
  /** Resolves with how QEMU ended. */
  exited: Promise<string>;
  /** Why it has ended, as far as QEMU or the host's kernel said. */
  ending(): ReturnType<Machine["ending"]> | "out_of_memory";
  /** What is amiss with it, until that is put right. */
  health: Published<Health>;
  /** Makes sure that the guest, which has just gone on, has a vsock device that works. Throws when it cannot have one. */
  ensureVsock(signal: AbortSignal): Promise<void>;
  /** Ends the guest and frees all it had but its logs. Again is nothing. */
  end(): Promise<void>;
}

/** A machine that is launched and paused, ready to become somebody's guest. */
export interface Launched {
  parts: LaunchParts & { machine: Machine };
  timings: Record<string, number>;
  /** Ends it and frees all it had. */
  end(): Promise<void>;
}

/** Launches a machine. Throws StepError; nothing is left behind then. */
export async function launchGuest(host: GuestHost, plan: LaunchPlan, mode: LaunchMode): Promise<Launched> {
  const parts: LaunchParts = { plan, host, mode };
  const undoFailed = undoReporter(host, plan.sandbox_id);
  const timings = await runSteps(launchSteps(mode), parts, undoFailed);
  const { machine } = parts;
  if (!machine) throw new Error("the machine step left no machine");
  return {
    parts: { ...parts, machine },
    timings,
    end: () => undoSteps(launchSteps(mode), parts, undoFailed),
  };
}

/**
 * Starts a guest, from `warm` when there is one that is launched. `onStarted` is called once its process runs; `signal` gives the start up.
 * Throws StepError; nothing is left behind then.
 */
export async function startGuest(
  host: GuestHost,
  plan: GuestPlan,
  warm: Launched | null,
  onStarted: () => void,
  signal: AbortSignal,
): Promise<Guest> {
  if (warm) return await join(host, plan, warm, "pool", onStarted, signal);
  const launched = await launchBestWay(host, plan);
  return await join(host, plan, launched, launched.parts.mode, onStarted, signal);
}

async function launchBestWay(host: GuestHost, plan: GuestPlan): Promise<Launched> {
  // The snapshot has one processor, and Linux 6.12 takes no other while it runs on QEMU without KVM.
  if (plan.image.snapshot_memory === null || plan.vcpu_count > 1) return await launchGuest(host, plan, "cold");
  try {
    return await launchGuest(host, plan, "snapshot");
  } catch (error) {
    // Only the snapshot itself is worth another way in; every other failure would repeat.
    if (!(error instanceof StepError) || error.step !== "load") throw error;
    host.log.warn("the snapshot did not load, booting cold", { sandbox_id: plan.sandbox_id, error: error.message });
    return await launchGuest(host, plan, "cold");
  }
}

async function join(
  host: GuestHost,
  plan: GuestPlan,
  launched: Launched,
  startMode: Guest["start_mode"],
  onStarted: () => void,
  signal: AbortSignal,
): Promise<Guest> {
  onStarted();
  const parts: GuestParts = {
    ...launched.parts,
    plan,
    host,
    signal,
    connection: connectionOf(host, plan, null),
    drive: firstPlace(plan),
  };
  const undoFailed = undoReporter(host, plan.sandbox_id);
  let timings: Record<string, number>;
  try {
    timings = await runSteps(JOIN_STEPS, parts, undoFailed);
  } catch (error) {
    await launched.end();
    throw error;
  }
  return guestOf(parts, startMode, { ...(startMode === "pool" ? {} : launched.timings), ...timings });
}

/** A guest of parts that are all there. */
export function guestOf(parts: GuestParts, startMode: Guest["start_mode"], timings: Record<string, number>): Guest {
  const { machine, connection, plan, host, mode } = parts;
  if (!machine) throw new Error("a guest without a machine");
  const keeper = new PartsKeeper(parts);
  keeper.begin();
  const agentStages = Object.entries(connection.state.value.stages_ms);
  return {
    plan,
    connection,
    machine,
    start_mode: startMode,
    boot: { ...timings, ...Object.fromEntries(agentStages.map(([name, ms]) => [`agent_${name}_ms`, ms])) },
    exited: machine.process.exited,
    ending: () => machine.ending() ?? (host.confinement.ranOutOfMemory(plan.sandbox_id) ? "out_of_memory" : null),
    health: keeper.health,
    ensureVsock: (signal) => keeper.ensureVsock(signal),
    end: async () => {
      connection.close("the sandbox is ending");
      await keeper.end();
      return await undoSteps(allSteps(mode), parts, undoReporter(host, plan.sandbox_id));
    },
  };
}

/** `nonce` is that of a guest which was set up before, by which it is recognised. */
export function connectionOf(host: GuestHost, plan: GuestPlan, nonce: string | null): GuestConnection {
  const drive = plan.drive_directory === null ? null : { tag: DRIVE_TAG, mount_point: DRIVE_MOUNT };
  const log = host.log.with({ sandbox_id: plan.sandbox_id });
  return new GuestConnection(plan.guest_cid, { ...plan.identity, drive }, nonce, log);
}

function undoReporter(host: GuestHost, sandboxId: string) {
  return (step: string, error: unknown) =>
    host.log.error("step not undone", { sandbox_id: sandboxId, step, error: String(error) });
}

/** Where the drive is plugged at first. */
function firstPlace({ image }: LaunchPlan): DrivePlace {
  return { turn: 0, ports: image.hardware.drive_ports, mounted: false };
}
