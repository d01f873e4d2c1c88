/** The steps of a guest's start, each with its undo. start.ts puts them in order. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { startTimer } from "../../core/clock.ts";
import type { Step } from "../../core/concurrency/undo-steps.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Limits } from "../confine/confinement.ts";
import { entryTo, founding, limitsOf } from "../confine/index.ts";
import { type Rank, rankSession } from "../cpu-priority.ts";
import type { GuestConnection } from "../guest-link/connection.ts";
import { firstPortOf } from "../guest-link/transports/choose.ts";
import type { VsockEndpoint } from "../guest-link/transports/transport.ts";
import { baseIn, layOver, linkBase } from "../images/base.ts";
import { layOverSnapshot } from "../images/layers.ts";
import { copyOverlay } from "../images/overlay.ts";
import { makeGuestDirectories, ownFile } from "../isolation/directories.ts";
import { directoriesOf } from "../isolation/root.ts";
import { writeKernelHead } from "../machine/kernel-head.ts";
import { type Machine, startMachine } from "../machine/machine.ts";
import type { MachineSpec } from "../machine/spec.ts";
import { endProcess, isAlive, type KnownProcess } from "../process.ts";
import { removeDisk } from "./leftovers.ts";
import type { GuestHost, GuestPlan, LaunchPlan, SavedMachine, StartPlan } from "./plan.ts";
import { plugDrive, plugVsock } from "./plug.ts";
import type { LaunchMode, Recorded, RecordFile } from "./record.ts";
import { forgetSaved } from "./saved-state.ts";
import { serveDrive } from "./serve-drive.ts";

/** Retry delay if a session could not be ranked: the kernel accepts that ten times a second from processes with few rights. */
const RANK_AGAIN_MS = 250;

interface MachineParts {
  host: GuestHost;
  /** The layer of its disk that it writes to; absent: the first one. */
  disk?: string;
  /** All that a later daemon needs; the rest are sockets and children of this one. */
  record: RecordFile;
  machine?: Machine;
  /** Limits of all its processes together, once it has a machine. */
  limits?: Limits;
  /** While no caller waits for it, others have priority; absent: serving. */
  rank?: Rank;
}

/** Parts of a launched machine. */
export interface LaunchParts extends MachineParts {
  plan: LaunchPlan;
}

/** Parts of a whole guest. */
export interface GuestParts extends MachineParts {
  plan: GuestPlan;
  connection: GuestConnection;
  signal: AbortSignal;
  share?: KnownProcess;
  endpoint?: VsockEndpoint;
  /** The endpoint that the agent has not dialled yet. */
  undialled?: VsockEndpoint | undefined;
}

/** The parts of a guest that is being started. */
export interface StartParts extends GuestParts {
  plan: StartPlan;
  /** Once its devices are recorded. */
  served?: Recorded<"served">;
  /** Saved state to load: whether its vsock device is part of it, and the version of its QEMU. */
  saved?: { vsock: boolean; qemu_version: string };
  /** Called when the guest is about to resume, and its saved state is gone. */
  onSpent?(): void;
}

const directories: Step<LaunchParts> = {
  name: "directories",
  run: ({ plan: { sandbox_id, paths }, host }) => makeGuestDirectories(paths, host.isolation.usersOf(sandbox_id)),
  undo: async (parts) => {
    requireEnded(parts);
    const { plan, host } = parts;
    await host.confinement.release(plan.sandbox_id);
    await rm(plan.paths.runtime, { recursive: true, force: true });
  },
};

const disk: Step<LaunchParts> = {
  name: "disk",
  run: async (parts) => {
    const { plan, host, record } = parts;
    const { sandbox_id, image, paths } = plan;
    const uid = host.isolation.usersOf(sandbox_id)?.qemu.uid ?? 0;
    if (image.over) {
      parts.disk = await layOverSnapshot(image.over, paths, sandbox_id, uid);
      return;
    }
    const { kernel, initramfs, root } = image;
    const [layer, empty] =
      record.now.mode === "snapshot"
        ? (["disk", image.snapshot_overlay] as const)
        : (["root", image.cold_overlay] as const);
    const of = { kernel, initramfs, root, empty, disk: layer === "disk" ? image.snapshot_disk : null };
    await Promise.all([linkBase(of, paths.base), copyOverlay(empty, paths.overlay)]);
    layOver(paths.overlay, layer);
    await ownFile(paths.overlay, uid);
  },
  undo: async (parts) => {
    requireEnded(parts);
    await removeDisk(parts.plan.paths);
  },
};

const machine: Step<LaunchParts> = {
  name: "machine",
  run: async (parts) => {
    const { plan, host, record } = parts;
    const { paths, image } = plan;
    // Its QEMU may not enter a snapshot's directory.
    const { kernel, initramfs } = image.over ? baseIn(paths.base) : image;
    const uuid = crypto.randomUUID();
    const { rank = "serving" } = parts;
    const limits = guestLimits(plan, rank);
    parts.limits = limits;
    const incoming = record.now.mode !== "cold";
    await rm(paths.kernel_head, { force: true });
    if (incoming) await writeKernelHead(kernel, paths.kernel_head);
    parts.machine = await startMachine(
      host.programs.qemu,
      {
        name: plan.sandbox_id,
        uuid,
        hardware: image.hardware,
        vcpu_count: plan.vcpu_count,
        kernel: incoming ? paths.kernel_head : kernel,
        initramfs,
        append: image.append,
        disk: parts.disk === undefined ? paths.overlay : join(paths.directory, parts.disk),
        sockets: { qmp: paths.qmp, qmp_spare: paths.qmp_spare, console: paths.console },
        user: host.isolation.usersOf(plan.sandbox_id)?.qemu ?? null,
        root: host.isolation.ownRoots ? await rootOf(plan) : null,
        vsock_file: host.transport.device_file,
        incoming,
      },
      { vmm_log: paths.vmm_log, console_log: paths.console_log },
      {
        onProcess: (qemu) => record.advance("launched", { uuid, qemu, machine: savedMachineOf(image) }),
        enter: founding(host.confinement, plan.sandbox_id, limits),
        rank,
      },
    );
    // A caller may have come in the meantime.
    await keepLimits(parts);
    await rm(paths.kernel_head, { force: true });
  },
  undo: async ({ machine, record }) => {
    const { qemu } = record.now;
    if (qemu) await endProcess(qemu);
    machine?.qmp.close();
  },
};

/** Its own directories, and those of the template that it starts from. If that is on another disk, its base consists of links. */
async function rootOf({ paths, image }: LaunchPlan): Promise<MachineSpec["root"]> {
  const { kernel, initramfs, snapshot_memory } = image;
  const files = [...(image.over ? [] : [kernel, initramfs]), ...(snapshot_memory === null ? [] : [snapshot_memory])];
  const seen = await directoriesOf([...files, ...Object.values(baseIn(paths.base))]);
  const own = [paths.directory, paths.runtime];
  return {
    ...{ directory: paths.own_root, table: paths.own_mounts },
    readOnly: seen.filter((path) => !own.some((above) => path === above || path.startsWith(`${above}/`))),
    writable: own,
  };
}

/** Files that QEMU uses, and by which it is found again, stay as long as it runs. */
function requireEnded({ record }: LaunchParts): void {
  const { qemu } = record.now;
  if (qemu && isAlive(qemu)) throw new Error("its QEMU has not ended");
}

const load: Step<LaunchParts> = {
  name: "load",
  run: async ({ machine, plan }) => machine?.load(plan.image.snapshot_memory ?? ""),
  undo: async () => {},
};

/** A machine that is ready to resume, and not assigned to a sandbox yet. */
export function launchSteps(mode: Exclude<LaunchMode, "saved">): Step<LaunchParts>[] {
  return [directories, disk, machine, ...(mode === "snapshot" ? [load] : [])];
}

function savedMachineOf({ hardware, append, agent_generation }: LaunchPlan["image"]): SavedMachine {
  return { hardware, append, agent_generation };
}

/** Two independent processes start in parallel; at the same time the limits become those of this guest. */
const devices: Step<StartParts> = {
  name: "devices",
  run: async (parts) => {
    const { plan, host, connection, record } = parts;
    const openVsock = async () => {
      parts.endpoint = await host.transport.open(vsockAddress(host, plan), (link) => connection.accept(link));
    };
    parts.rank = "serving";
    const restores = record.now.mode === "saved";
    const started = await Promise.allSettled([serveDrive(parts, restores), openVsock(), keepLimits(parts)]);
    for (const outcome of started) if (outcome.status === "rejected") throw outcome.reason;
    parts.served = await record.advance("served", {
      guest_cid: plan.guest_cid,
      virtiofsd: parts.share ?? null,
      vsock: parts.endpoint?.process ?? null,
      ports: plan.image.hardware.drive_ports,
      known: connection.acquaintance,
    });
  },
  undo: async ({ share, endpoint, connection }) => {
    connection.close("the sandbox did not start");
    await Promise.all([share ? endProcess(share) : undefined, endpoint?.close()]);
  },
};

/** Devices are plugged after the load and before the resume: earlier the guest would never see them. */
const plug: Step<StartParts> = {
  name: "plug",
  run: async ({ machine, endpoint, share, served, plan }) => {
    if (!machine || !endpoint || !served) throw new Error("there is no machine to plug into");
    await plugVsock(machine, endpoint, served);
    if (share) await plugDrive(machine, plan.paths, served);
    await machine.resizeMemory(plan.memory_mib, plan.image.hardware);
  },
  undo: async () => {},
};

/** The saved state includes these devices: they must be plugged before it is loaded, into the same ports. */
const knownDevices: Step<StartParts> = {
  name: "drive",
  run: async ({ machine, endpoint, share, served, plan, saved }) => {
    if (!machine || !endpoint || !served) throw new Error("there is no machine to plug into");
    if (saved) requireAsNew(await machine.version(), saved.qemu_version);
    if (share) await plugDrive(machine, plan.paths, served);
    if (saved?.vsock) await plugVsock(machine, endpoint, served);
  },
  undo: async () => {},
};

/** A QEMU loads the saved state of older versions, not of newer ones. Throws snapshot_incompatible. */
export function requireAsNew(here: string, saved: string): void {
  const [one, other] = [here, saved].map((version) => version.split(".").slice(0, 2).map(Number));
  const [[major = 0, minor = 0] = [], [savedMajor = 0, savedMinor = 0] = []] = [one, other];
  if (major > savedMajor || (major === savedMajor && minor >= savedMinor)) return;
  throw new ServiceError("snapshot_incompatible", {
    detail: `It was saved by QEMU ${saved}, and this host has ${here}, which is older.`,
    details: { differs: "qemu_version", saved, here },
  });
}

/** A device that was not saved is plugged as a new one. */
const vsock: Step<StartParts> = {
  name: "vsock",
  run: async ({ machine, endpoint, served, saved }) => {
    if (!machine || !endpoint || !served) throw new Error("there is no machine to plug into");
    if (!saved?.vsock) await plugVsock(machine, endpoint, served);
  },
  undo: async () => {},
};

/** From here on the guest changes its disk, and its saved memory no longer matches that. */
const spend: Step<StartParts> = {
  name: "spend",
  run: async ({ plan, onSpent }) => {
    await forgetSaved(plan.paths);
    onSpent?.();
  },
  undo: async () => {},
};

const resume: Step<GuestParts> = {
  name: "resume",
  run: async ({ machine }) => machine?.resume(),
  undo: async () => {},
};

const agent: Step<StartParts> = {
  name: "agent",
  run: async ({ plan, connection, machine, share, endpoint, signal, record }) => {
    const died = [machine?.process, share, endpoint?.process].map((process) =>
      process?.exited?.then((how) => {
        throw new Error(`${process.name} has ended: ${how}`);
      }),
    );
    for (const end of died) end?.catch(() => {});
    await Promise.race([connection.link(plan.agent_deadline_ms, signal), ...died.filter((end) => end !== undefined)]);
    await record.advance("linked", { known: connection.acquaintance });
  },
  undo: async () => {},
};

/** Assigns a launched machine to a sandbox. */
export const JOIN_STEPS: Step<StartParts>[] = [devices, plug, resume, agent];

/** Makes a guest from its saved state; its disk exists and stays after any failure. */
export const RESTORE_STEPS: Step<StartParts>[] = [
  directories,
  machine,
  devices,
  knownDevices,
  load,
  vsock,
  spend,
  resume,
  agent,
];

/** All steps of a guest, for its teardown. */
export function allSteps(mode: LaunchMode): Step<StartParts>[] {
  if (mode !== "saved") return [...launchSteps(mode), ...JOIN_STEPS];
  const [first, ...rest] = RESTORE_STEPS;
  return [...(first ? [first] : []), disk, ...rest];
}

/** All steps but the disk's, for a guest that was saved. */
export function stepsBesideDisk(mode: LaunchMode): Step<StartParts>[] {
  return allSteps(mode).filter((step) => step !== disk);
}

/** The host with the transport that a guest's agent dials over. Throws not_ready while the transport is unavailable. */
export function hostFor(
  on: GuestHost,
  { agent_generation }: Pick<SavedMachine, "agent_generation">,
  kind = on.transport.kind,
): GuestHost {
  return { ...on, transport: on.transportOf(kind, firstPortOf(agent_generation)) };
}

export function vsockAddress(
  { isolation, confinement }: GuestHost,
  { sandbox_id, guest_cid, paths }: Pick<GuestPlan, "sandbox_id" | "guest_cid" | "paths">,
) {
  return {
    sandbox_id,
    guest_cid,
    device_socket: paths.vsock_device,
    guest_socket: paths.vsock,
    log_file: paths.vmm_log,
    users: isolation.usersOf(sandbox_id),
    enter: entryTo(confinement, sandbox_id),
  };
}

/** A caller waits for it now: it gets full priority. If that fails now it is done when it joins. */
export async function bringForward(parts: LaunchParts): Promise<void> {
  parts.rank = "serving";
  if (parts.record.now.qemu) await keepLimits(parts).catch(() => {});
}

/** Applies the limits of the guest's plan and rank. */
async function keepLimits(parts: LaunchParts | StartParts): Promise<void> {
  const { plan, host, record, rank = "serving" } = parts;
  const limits = guestLimits(plan, rank);
  if (Bun.deepEquals(limits, parts.limits)) return;
  const { qemu } = record.now;
  if (host.confinement.kind !== "none") await host.confinement.limit(plan.sandbox_id, limits);
  else if (!qemu) return;
  else if (!rankSession(qemu.pid, rank)) {
    // No start fails because of it, and no guest keeps a low priority forever.
    if (isAlive(qemu)) startTimer(() => void keepLimits(parts), RANK_AGAIN_MS).unref();
    return;
  }
  parts.limits = limits;
}

function guestLimits({ memory_mib, vcpu_count, image }: LaunchPlan, rank: Rank): Limits {
  const { acceleration, base_memory_mib } = image.hardware;
  return limitsOf({ memory_mib: Math.max(memory_mib, base_memory_mib), vcpu_count, acceleration }, rank);
}
