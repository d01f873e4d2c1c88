/** Owns the steps by which a guest comes up, each with its undo. start.ts puts them in order. */
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import type { Step } from "../../core/steps.ts";
import type { GuestConnection } from "../guest-link/connection.ts";
import type { VsockEndpoint } from "../guest-link/transports/transport.ts";
import { copyOverlay, removeOverlay } from "../images/overlay.ts";
import { type Machine, startMachine } from "../machine/machine.ts";
import { endProcess, type KnownProcess, type ProcessRecord } from "../process.ts";
import { DRIVE_TAG, startShare } from "../virtiofs/share.ts";
import type { GuestHost, GuestPlan, LaunchPlan } from "./plan.ts";

/** Under TCG on a busy host a cold boot takes most of it. */
const AGENT_DEADLINE_MS = 100_000;

export type LaunchMode = "snapshot" | "cold";

/** What a launched machine consists of. */
export interface LaunchParts {
  plan: LaunchPlan;
  host: GuestHost;
  mode: LaunchMode;
  machine?: Machine;
}

/** What a whole guest consists of. */
export interface GuestParts extends LaunchParts {
  plan: GuestPlan;
  connection: GuestConnection;
  signal: AbortSignal;
  share?: KnownProcess;
  endpoint?: VsockEndpoint;
}

/** Which processes belong to a guest, kept on disk for a daemon that comes after this one. */
export interface GuestProcesses {
  sandbox_id: string;
  guest_cid: number | null;
  mode: LaunchMode;
  /** The agent's nonce, once it is known: by it the guest is recognised. */
  nonce: string | null;
  qemu: ProcessRecord | null;
  virtiofsd: ProcessRecord | null;
  vsock: ProcessRecord | null;
}

const directories: Step<LaunchParts> = {
  name: "directories",
  run: async ({ plan: { paths } }) => {
    await mkdir(paths.directory, { recursive: true, mode: 0o700 });
    await mkdir(paths.runtime, { recursive: true, mode: 0o700 });
  },
  undo: ({ plan: { paths } }) => rm(paths.runtime, { recursive: true, force: true }),
};

const disk: Step<LaunchParts> = {
  name: "disk",
  run: ({ plan: { image, paths }, mode }) =>
    copyOverlay(mode === "snapshot" ? image.snapshot_overlay : image.cold_overlay, paths.overlay),
  undo: ({ plan: { paths } }) => removeOverlay(paths.overlay),
};

const machine: Step<LaunchParts> = {
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
        vcpu_count: plan.vcpu_count,
        kernel: image.kernel,
        initramfs: image.initramfs,
        append: image.append,
        disk: paths.overlay,
        sockets: { qmp: paths.qmp, qmp_spare: paths.qmp_spare, console: paths.console },
        incoming: mode === "snapshot",
      },
      { vmm_log: paths.vmm_log, console_log: paths.console_log },
      (qemu) => recordProcesses(plan.paths.processes, processesOf(parts, qemu)),
    );
  },
  undo: async ({ machine }) => machine?.end(),
};

const load: Step<LaunchParts> = {
  name: "load",
  run: async ({ machine, plan }) => machine?.load(plan.image.snapshot_memory ?? ""),
  undo: async () => {},
};

/** A machine that is ready to go, and belongs to nobody yet. */
export function launchSteps(mode: LaunchMode): Step<LaunchParts>[] {
  return [directories, disk, machine, ...(mode === "snapshot" ? [load] : [])];
}

/** Two processes that know nothing of each other start side by side. */
const devices: Step<GuestParts> = {
  name: "devices",
  run: async (parts) => {
    const { plan, host, connection } = parts;
    const { paths } = plan;
    const startDrive = async () => {
      if (plan.drive_directory === null) return;
      parts.share = await startShare({
        virtiofsd: host.programs.virtiofsd,
        directory: plan.drive_directory,
        socket: paths.virtiofs,
        logFile: paths.vmm_log,
      });
    };
    const openVsock = async () => {
      parts.endpoint = await host.transport.open(vsockAddress(plan), (link) => connection.accept(link));
    };
    const started = await Promise.allSettled([startDrive(), openVsock()]);
    for (const outcome of started) if (outcome.status === "rejected") throw outcome.reason;
    await recordProcesses(paths.processes, processesOf(parts, parts.machine?.process));
  },
  undo: async ({ share, endpoint, connection }) => {
    connection.close("the sandbox did not start");
    await Promise.all([share ? endProcess(share) : undefined, endpoint?.close()]);
  },
};

/** Devices come after the load and before the guest goes on: earlier it would never see them. */
const plug: Step<GuestParts> = {
  name: "plug",
  run: async ({ machine, endpoint, share, plan }) => {
    if (!machine || !endpoint) throw new Error("there is no machine to plug into");
    await machine.plugVsock(endpoint.device);
    if (share) await machine.plugDrive(plan.paths.virtiofs, DRIVE_TAG);
    await machine.resizeMemory(plan.memory_mib);
  },
  undo: async () => {},
};

const resume: Step<GuestParts> = {
  name: "resume",
  run: async ({ machine }) => machine?.resume(),
  undo: async () => {},
};

const agent: Step<GuestParts> = {
  name: "agent",
  run: async (parts) => {
    const { connection, machine, signal, plan } = parts;
    const died = machine?.process.exited.then((how) => {
      throw new Error(`QEMU has ended: ${how}`);
    });
    died?.catch(() => {});
    await Promise.race([connection.link(AGENT_DEADLINE_MS, signal), ...(died ? [died] : [])]);
    await recordProcesses(plan.paths.processes, processesOf(parts, machine?.process));
  },
  undo: async () => {},
};

/** Makes a launched machine somebody's. */
export const JOIN_STEPS: Step<GuestParts>[] = [devices, plug, resume, agent];

/** All that a guest has, for its end. */
export function allSteps(mode: LaunchMode): Step<GuestParts>[] {
  return [...launchSteps(mode), ...JOIN_STEPS] as Step<GuestParts>[];
}

export function vsockAddress({ sandbox_id, guest_cid, paths }: GuestPlan) {
  return {
    sandbox_id,
    guest_cid,
    device_socket: paths.vsock_device,
    guest_socket: paths.vsock,
    log_file: paths.vmm_log,
  };
}

/** Writes down which processes are the guest's now. */
export async function recordParts(parts: GuestParts): Promise<void> {
  await recordProcesses(parts.plan.paths.processes, processesOf(parts, parts.machine?.process));
}

type RecordedParts = LaunchParts & Partial<Pick<GuestParts, "connection" | "share" | "endpoint">>;

function processesOf(parts: RecordedParts, qemu: ProcessRecord | undefined): GuestProcesses {
  const record = (process: ProcessRecord | null | undefined) =>
    process ? { pid: process.pid, start_ticks: process.start_ticks } : null;
  return {
    sandbox_id: parts.plan.sandbox_id,
    guest_cid: "guest_cid" in parts.plan ? (parts.plan as GuestPlan).guest_cid : null,
    mode: parts.mode,
    nonce: parts.connection?.nonce ?? null,
    qemu: record(qemu),
    virtiofsd: record(parts.share),
    vsock: record(parts.endpoint?.process),
  };
}

/** Whole or not at all: a daemon that comes after a crash must be able to read it. */
async function recordProcesses(file: string, processes: GuestProcesses): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify(processes), { mode: 0o600 });
  await rename(`${file}.new`, file);
}
