/**
 * Start of a guest:
 *
 *     launch   directories → disk → machine → load (from a snapshot)
 *     join     devices → plug → resume → agent
 *
 * The first half may have been done ahead (pool.ts); a machine that ended while it waited is replaced by a fresh one, and a snapshot that
 * does not load by a cold boot. After any failure nothing remains but the logs.
 */
import type { Restored } from "../../../shared/agent-protocol/messages.ts";
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import { type Published, within } from "../../core/concurrency/published.ts";
import { runSteps, type Step, StepError, undoSteps } from "../../core/concurrency/undo-steps.ts";
import { GuestConnection, type KnownAgent, strangers } from "../guest-link/connection.ts";
import type { Machine } from "../machine/machine.ts";
import { isAlive } from "../process.ts";
import { DRIVE_TAG } from "../virtiofs/share.ts";
import { endProcesses } from "./leftovers.ts";
import { Shortener } from "./merge-layers.ts";
import type { GuestHost, GuestPlan, LaunchPlan, StartPlan } from "./plan.ts";
import { type GuestRecord, type LaunchMode, newRecord, RecordFile } from "./record.ts";
import { type SnapshotRequest, type SnapshotTaken, StrandedError, saveGuest, snapshotGuest } from "./save.ts";
import { type Health, Sidecars } from "./sidecars.ts";
import {
  allSteps,
  bringForward,
  type GuestParts,
  hostFor,
  JOIN_STEPS,
  type LaunchParts,
  launchSteps,
  type StartParts,
  stepsBesideDisk,
} from "./steps.ts";

/** Time that an exiting QEMU takes to free its memory. */
const ENDING_MS = 500;

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
  /** Why it has ended, as far as QEMU or the host's kernel reported it. */
  ending(): ReturnType<Machine["ending"]> | "out_of_memory";
  /** Faults of the guest, until they are resolved. */
  health: Published<Health>;
  /** Its current record, from memory: callers that need many records do not read files. */
  record(): GuestRecord;
  /** Gives a guest that was just resumed a working vsock device. Throws if it cannot have one. */
  ensureVsock(signal: AbortSignal): Promise<void>;
  /**
   * Pauses or resumes the guest's processors, or detects that this has happened: QEMU then needs answers from the drive's process, held or
   * not.
   */
  changeRun(change: (machine: Machine) => Promise<void>): Promise<void>;
  /**
   * Saves the guest to its directory (save.ts): then it is paused, must not resume, and `leave` is to be called. Throws if it resumed as
   * before; StrandedError if it did not.
   */
  save(signal: AbortSignal): Promise<void>;
  /** Merges its layers: not while others are put into its directory. */
  shortener: Pick<Shortener, "begin" | "end">;
  /** Takes a snapshot of the guest, which then resumes (save.ts). Throws StrandedError if it does not. */
  snapshot(request: SnapshotRequest, signal: AbortSignal): Promise<SnapshotTaken>;
  /** Ends the guest and frees everything except its logs, its disk, and its saved state. Throws if something remains. */
  leave(): Promise<void>;
  /** Ends the guest and frees everything except its logs. Throws if something remains; can be retried. */
  end(): Promise<void>;
}

/** Called once the guest's process runs, with its start mode. */
export type OnStarted = (mode: Guest["start_mode"]) => void;

/** A launched, paused machine, ready to be assigned to a sandbox. */
export interface Launched {
  parts: LaunchParts & { machine: Machine };
  mode: Exclude<LaunchMode, "saved">;
  timings: Record<string, number>;
  /** Ends it and frees everything. Throws if something remains; can be retried. */
  end(): Promise<void>;
}

/**
 * Launches a machine, unless `signal` cancels it. If `awaited` is given, no caller waits for the machine until that is aborted, and it has
 * lower CPU priority than sandboxes. Throws StepError.
 */
export async function launchGuest(
  host: GuestHost,
  plan: LaunchPlan,
  mode: Exclude<LaunchMode, "saved">,
  { signal, awaited }: { signal?: AbortSignal; awaited?: AbortSignal } = {},
): Promise<Launched> {
  const record = new RecordFile(plan.paths.processes, newRecord(plan.sandbox_id, mode));
  const parts: LaunchParts = { plan, host, record, rank: awaited ? "waiting" : "serving" };
  awaited?.addEventListener("abort", () => void bringForward(parts), { once: true });
  const timings = await runSteps(launchSteps(mode), parts, undoReporter(host, plan.sandbox_id), signal);
  const { machine } = parts;
  if (!machine) throw new Error("the machine step left no machine");
  return { parts: { ...parts, machine }, mode, timings, end: () => undoAll(launchSteps(mode), parts) };
}

/**
 * Starts a guest, from `warm` if that is launched. `onStarted` is called once its process runs. When `signal` cancels the start, the
 * guest's processes are killed, whatever they are doing. Throws; leftovers are in StepError.not_undone.
 */
export async function startGuest(
  host: GuestHost,
  plan: StartPlan,
  warm: Promise<Launched> | null,
  onStarted: OnStarted,
  signal: AbortSignal,
): Promise<Guest> {
  // The steps wait for these processes and for nothing else; without them they fail, and are undone.
  const giveUp = () => void endProcesses(plan.paths).catch(() => {});
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    // A machine that could not be launched counts as absent.
    const ready = await warm?.catch(() => null);
    const guest = ready ? await joinWarm(host, plan, ready, onStarted, signal) : null;
    return guest ?? (await startFresh(host, plan, onStarted, signal));
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}

async function startFresh(host: GuestHost, plan: StartPlan, onStarted: OnStarted, signal: AbortSignal): Promise<Guest> {
  const launched = await launchBestWay(host, plan, signal);
  try {
    return await join(host, plan, launched, launched.mode, onStarted, signal);
  } catch (error) {
    await launched.end();
    throw error;
  }
}

/** A guest made of the warm machine; null if that had ended on its own. */
async function joinWarm(
  host: GuestHost,
  plan: StartPlan,
  warm: Launched,
  onStarted: OnStarted,
  signal: AbortSignal,
): Promise<Guest | null> {
  try {
    return await join(host, plan, warm, "pool", onStarted, signal);
  } catch (error) {
    const { process } = warm.parts.machine;
    // QEMU's sockets close a moment before its process has ended.
    const ended = await within(process.exited, ENDING_MS, "QEMU's end").then(
      () => true,
      () => !isAlive(process),
    );
    await warm.end();
    if (!ended || signal.aborted) throw error;
    host.log.warn("the warm machine had ended, launching another", { sandbox_id: plan.sandbox_id });
    return null;
  }
}

async function launchBestWay(host: GuestHost, plan: StartPlan, signal: AbortSignal): Promise<Launched> {
  // Linux 6.12 accepts no further processor at run time on QEMU without KVM: a snapshot has the number that it was saved with.
  const { snapshot_memory, snapshot_vcpus } = plan.image;
  if (snapshot_memory === null || plan.vcpu_count !== snapshot_vcpus)
    return await launchGuest(host, plan, "cold", { signal });
  try {
    return await launchGuest(host, plan, "snapshot", { signal });
  } catch (error) {
    // Only a failure of the snapshot itself justifies another start mode; every other failure would repeat.
    if (!(error instanceof StepError) || error.step !== "load" || signal.aborted) throw error;
    host.log.warn("the snapshot did not load, booting cold", { sandbox_id: plan.sandbox_id, error: error.message });
    return await launchGuest(host, plan, "cold", { signal });
  }
}

async function join(
  on: GuestHost,
  plan: StartPlan,
  launched: Launched,
  startMode: Guest["start_mode"],
  onStarted: OnStarted,
  signal: AbortSignal,
): Promise<Guest> {
  onStarted(startMode);
  const startMs = startMode === "cold" ? plan.image.start_ms : 0;
  const host = hostFor(on, plan.image);
  const parts: StartParts = {
    ...launched.parts,
    plan: { ...plan, agent_deadline_ms: plan.agent_deadline_ms + startMs },
    host,
    signal,
    connection: connectionOf(host, plan, strangers(plan.image.agent_generation), startMs),
  };
  const timings = await runSteps(JOIN_STEPS, parts, undoReporter(host, plan.sandbox_id), signal);
  return guestOf(parts, startMode, { ...(startMode === "pool" ? {} : launched.timings), ...timings });
}

/** A guest from complete parts. */
export function guestOf(parts: GuestParts, startMode: Guest["start_mode"], timings: Record<string, number>): Guest {
  const { machine, connection, plan, host, record } = parts;
  if (!machine) throw new Error("a guest without a machine");
  const keeper = new Sidecars(parts);
  keeper.begin();
  const shortener = new Shortener(parts, machine);
  shortener.begin();
  const endBy = async (steps: readonly Step<StartParts>[]) => {
    connection.close("the sandbox is ending");
    shortener.leave();
    await keeper.end();
    await undoAll<GuestParts>(steps as readonly Step<GuestParts>[], parts);
  };
  /** Exclusive access to its parts and its layers. A stranded guest ends. */
  const runExclusively = async <T>(work: () => Promise<T>, afterwards: "stays" | "goes on"): Promise<T> => {
    await keeper.end();
    const goOn = () => {
      keeper.begin();
      shortener.begin();
    };
    try {
      await shortener.end();
      const done = await work();
      if (afterwards === "goes on") goOn();
      return done;
    } catch (error) {
      if (!(error instanceof StrandedError)) goOn();
      throw error;
    }
  };
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
    record: () => record.now,
    ensureVsock: (signal) => keeper.ensureVsock(signal),
    changeRun: (change) => {
      const { share } = parts;
      return share ? host.restraints.answering(share, () => change(machine)) : change(machine);
    },
    shortener,
    save: (signal) => runExclusively(() => saveGuest(parts, signal), "stays"),
    snapshot: (request, signal) => runExclusively(() => snapshotGuest(parts, request, signal), "goes on"),
    leave: () => endBy(stepsBesideDisk(record.now.mode)),
    end: () => endBy(allSteps(record.now.mode)),
  };
}

async function undoAll<Parts extends LaunchParts | GuestParts>(
  steps: readonly Step<Parts>[],
  parts: Parts,
): Promise<void> {
  const left = await undoSteps(steps, parts, undoReporter(parts.host, parts.plan.sandbox_id));
  if (left.length > 0) throw new Error(`not undone: ${left.join(", ")}`);
}

export function connectionOf(
  host: GuestHost,
  plan: GuestPlan,
  known: KnownAgent,
  startMs = 0,
  restored: Restored | null = null,
): GuestConnection {
  const drive = plan.drive_directory === null ? null : { tag: DRIVE_TAG, mount_point: DRIVE_MOUNT };
  const log = host.log.with({ sandbox_id: plan.sandbox_id });
  return new GuestConnection(plan.guest_cid, { ...plan.identity, drive }, known, log, plan.requests, startMs, restored);
}

export function undoReporter(host: GuestHost, sandboxId: string) {
  return (step: string, error: unknown) =>
    host.log.error("failed to undo a step", { sandbox_id: sandboxId, step, error: String(error) });
}
