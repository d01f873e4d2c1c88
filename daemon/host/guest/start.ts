/**
 * Owns how a guest comes up, step by step, each with its undo:
 *
 *   directories → disk → share + vsock → machine → load (from a snapshot) → plug → resume → agent
 *
 * A snapshot that does not load is followed by a cold boot; whatever fails, nothing is left behind but the logs.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import type { Log } from "../../core/log.ts";
import { runSteps, type Step, StepError, undoSteps } from "../../core/steps.ts";
import { GuestConnection } from "../guest-link/connection.ts";
import type { VsockEndpoint, VsockTransport } from "../guest-link/transports/transport.ts";
import { copyOverlay, removeOverlay } from "../images/overlay.ts";
import { type Machine, startMachine } from "../machine/machine.ts";
import { endProcess, type HostProcess } from "../process.ts";
import { DRIVE_TAG, startShare } from "../virtiofs/share.ts";
import type { GuestPlan, HostPrograms } from "./plan.ts";

export const DRIVE_MOUNT = "/mnt/drive";
/** Under TCG on a busy host a cold boot takes most of it. */
const AGENT_DEADLINE_MS = 100_000;

export interface GuestHost {
  programs: HostPrograms;
  transport: VsockTransport;
  log: Log;
}

export type StartMode = "snapshot" | "cold";

/** A guest that is up. */
export interface Guest {
  plan: GuestPlan;
  connection: GuestConnection;
  machine: Machine;
  start_mode: StartMode;
  /** Milliseconds per stage, in fields ending `_ms`. */
  boot: Record<string, number>;
  /** Resolves with how QEMU ended. */
  exited: Promise<string>;
  /** Ends the guest and frees all it had but its logs. Again is nothing. */
  end(): Promise<void>;
}

interface Parts {
  plan: GuestPlan;
  host: GuestHost;
  mode: StartMode;
  signal: AbortSignal;
  connection: GuestConnection;
  share?: HostProcess;
  endpoint?: VsockEndpoint;
  machine?: Machine;
}

/**
 * Starts a guest. `onStarted` is called once its process runs; `signal` gives the start up.
 * Throws StepError; nothing is left behind then.
 */
export async function startGuest(
  host: GuestHost,
  plan: GuestPlan,
  onStarted: () => void,
  signal: AbortSignal,
): Promise<Guest> {
  if (plan.image.snapshot_memory === null) return await attempt(host, plan, "cold", onStarted, signal);
  try {
    return await attempt(host, plan, "snapshot", onStarted, signal);
  } catch (error) {
    // Only the snapshot itself is worth another way in; every other failure would repeat.
    if (!(error instanceof StepError) || error.step !== "load") throw error;
    host.log.warn("the snapshot did not load, booting cold", { sandbox_id: plan.sandbox_id, error: error.message });
    return await attempt(host, plan, "cold", onStarted, signal);
  }
}

async function attempt(
  host: GuestHost,
  plan: GuestPlan,
  mode: StartMode,
  onStarted: () => void,
  signal: AbortSignal,
): Promise<Guest> {
  const drive = plan.drive_directory === null ? null : { tag: DRIVE_TAG, mount_point: DRIVE_MOUNT };
  const log = host.log.with({ sandbox_id: plan.sandbox_id });
  const parts: Parts = {
    plan,
    host,
    mode,
    signal,
    connection: new GuestConnection(plan.guest_cid, { ...plan.identity, drive }, log),
  };
  const undoFailed = (step: string, error: unknown) => log.error("step not undone", { step, error: String(error) });
  const steps = stepsOf(mode, onStarted);
  const timings = await runSteps(steps, parts, undoFailed);
  const { machine } = parts;
  if (!machine) throw new Error("the machine step left no machine");
  const agentStages = Object.entries(parts.connection.state.value.stages_ms);
  return {
    plan,
    connection: parts.connection,
    machine,
    start_mode: mode,
    boot: { ...timings, ...Object.fromEntries(agentStages.map(([name, ms]) => [`agent_${name}_ms`, ms])) },
    exited: machine.process.exited,
    end: () => {
      parts.connection.close("the sandbox is ending");
      return undoSteps(steps, parts, undoFailed);
    },
  };
}

function stepsOf(mode: StartMode, onStarted: () => void): Step<Parts>[] {
  const snapshot = mode === "snapshot";
  return [
    directories,
    disk,
    shareAndVsock,
    makeMachineStep(onStarted),
    ...(snapshot ? [load] : []),
    plug,
    resume,
    agent,
  ];
}

const directories: Step<Parts> = {
  name: "directories",
  run: async ({ plan: { paths } }) => {
    await mkdir(paths.directory, { recursive: true, mode: 0o700 });
    await mkdir(paths.runtime, { recursive: true, mode: 0o700 });
  },
  undo: ({ plan: { paths } }) => rm(paths.runtime, { recursive: true, force: true }),
};

const disk: Step<Parts> = {
  name: "disk",
  run: ({ plan: { image, paths }, mode }) =>
    copyOverlay(mode === "snapshot" ? image.snapshot_overlay : image.cold_overlay, paths.overlay),
  undo: ({ plan: { paths } }) => removeOverlay(paths.overlay),
};

/** Two processes that know nothing of each other start side by side. */
const shareAndVsock: Step<Parts> = {
  name: "devices",
  run: async (parts) => {
    const { plan, host, connection } = parts;
    const { paths } = plan;
    const started = await Promise.allSettled([
      plan.drive_directory === null
        ? undefined
        : startShare({
            virtiofsd: host.programs.virtiofsd,
            directory: plan.drive_directory,
            socket: paths.virtiofs,
            logFile: paths.vmm_log,
          }).then((share) => {
            parts.share = share;
          }),
      host.transport
        .open(
          {
            sandbox_id: plan.sandbox_id,
            guest_cid: plan.guest_cid,
            device_socket: paths.vsock_device,
            guest_socket: paths.vsock,
            log_file: paths.vmm_log,
          },
          (link) => connection.accept(link),
        )
        .then((endpoint) => {
          parts.endpoint = endpoint;
        }),
    ]);
    for (const outcome of started) if (outcome.status === "rejected") throw outcome.reason;
    await recordProcesses(parts);
  },
  undo: async ({ share, endpoint, connection }) => {
    connection.close("the sandbox did not start");
    await Promise.all([share ? endProcess(share) : undefined, endpoint?.close()]);
  },
};

function makeMachineStep(onStarted: () => void): Step<Parts> {
  return {
    name: "machine",
    run: async (parts) => {
      const { plan, host, mode } = parts;
      const { paths, image } = plan;
      parts.machine = await startMachine(
        host.programs.qemu,
        {
          name: plan.sandbox_id,
          uuid: crypto.randomUUID(),
          hardware: image.hardware,
          kernel: image.kernel,
          initramfs: image.initramfs,
          append: image.append,
          disk: paths.overlay,
          sockets: { qmp: paths.qmp, qmp_spare: paths.qmp_spare, console: paths.console },
          incoming: mode === "snapshot",
        },
        { vmm_log: paths.vmm_log, console_log: paths.console_log },
      );
      await recordProcesses(parts);
      onStarted();
    },
    undo: async ({ machine }) => machine?.end(),
  };
}

const load: Step<Parts> = {
  name: "load",
  run: async ({ machine, plan }) => machine?.load(plan.image.snapshot_memory ?? ""),
  undo: async () => {},
};

/** Devices come after the load and before the guest goes on: earlier it would never see them. */
const plug: Step<Parts> = {
  name: "plug",
  run: async ({ machine, endpoint, share, plan }) => {
    if (!machine || !endpoint) throw new Error("there is no machine to plug into");
    await machine.plugVsock(endpoint.device);
    if (share) await machine.plugDrive(plan.paths.virtiofs, DRIVE_TAG);
    await machine.resizeMemory(plan.memory_mib);
    await machine.plugCpus(plan.vcpu_count);
  },
  undo: async () => {},
};

const resume: Step<Parts> = {
  name: "resume",
  run: async ({ machine }) => machine?.resume(),
  undo: async () => {},
};

const agent: Step<Parts> = {
  name: "agent",
  run: async ({ connection, machine, signal }) => {
    const died = machine?.process.exited.then((how) => {
      throw new Error(`QEMU has ended: ${how}`);
    });
    died?.catch(() => {});
    await Promise.race([connection.link(AGENT_DEADLINE_MS, signal), ...(died ? [died] : [])]);
  },
  undo: async () => {},
};

/** Leaves on disk which processes belong to this guest, for a daemon that comes after this one. */
async function recordProcesses({ plan, share, endpoint, machine }: Parts): Promise<void> {
  const record = (process: HostProcess | null | undefined) =>
    process ? { pid: process.pid, start_ticks: process.start_ticks } : null;
  const processes = {
    sandbox_id: plan.sandbox_id,
    guest_cid: plan.guest_cid,
    qemu: record(machine?.process),
    virtiofsd: record(share),
    vsock: record(endpoint?.process),
  };
  await writeFile(plan.paths.processes, JSON.stringify(processes), { mode: 0o600 });
}
