/** One running QEMU: start, load a snapshot, plug, run, save, end. It is independent of rooms and agents. */
import type { Socket } from "bun";
import { monotonicMs, sleep } from "../../core/clock.ts";
import { Published, within } from "../../core/concurrency/published.ts";
import { giveWay, type Rank } from "../cpu-priority.ts";
import { asUser, asUserWithin } from "../isolation/argv.ts";
import { makeOwnRoot } from "../isolation/root.ts";
import { offerToOomKiller, wasOomKilled } from "../oom.ts";
import {
  DEVICE_DESCRIPTOR,
  type Enter,
  endProcess,
  type HostProcess,
  type KnownProcess,
  type ProcessRecord,
  startEntering,
} from "../process.ts";
import { connectWhenThere } from "../unix-socket.ts";
import { qemuArgv } from "./argv.ts";
import { ConsoleLog, consoleHandlers } from "./console.ts";
import { Qmp, QmpError, type QmpEvent } from "./qmp.ts";
import { NonsenseError } from "./qmp-message.ts";
import { drivePort, type Hardware, type MachineSpec, MEMORY_BLOCK_MIB, VSOCK_PORT } from "./spec.ts";

const START_DEADLINE_MS = 20_000;
/** A monitor that has its client greets no other: then the spare one is tried. */
const GREETING_DEADLINE_MS = 3_000;
const MIGRATION_DEADLINE_MS = 600_000;
const LISTEN_DEADLINE_MS = 5_000;
/** The guest's kernel releases a device in its own time, as a rule within 44 ms. */
const UNPLUG_DEADLINE_MS = 10_000;
/** QEMU's sockets close a moment before its process ends; freeing much memory takes a while. */
const ENDING_MS = 5_000;
/** Pages at fixed offsets of the file, and events instead of polling. */
const MIGRATION_CAPABILITIES = ["mapped-ram", "events"];

export interface MachineFiles {
  vmm_log: string;
  console_log: string;
}

export interface Machine {
  process: HostProcess;
  qmp: Qmp;
  /** Calls the listener with the output of the guest's serial console, until the returned function is called. */
  onConsole(listener: (bytes: Uint8Array) => void): () => void;
  /** Types a line on the guest's serial console. It must be short: nothing waits for the guest to read it. */
  typeLine(line: string): void;
  /** Loads a snapshot that `save` made. */
  load(memoryFile: string): Promise<void>;
  /** Pauses the guest, awaits `whenStill`, and saves memory and device state. If that fails it stays paused and can be resumed. */
  save(memoryFile: string, whenStill?: () => Promise<void>): Promise<void>;
  /** Cancels a save that an earlier daemon started: its output is useless. Does nothing if there is no save. */
  cancelSave(): Promise<void>;
  /** The file of the guest's disk, as QEMU has opened it. */
  disk(): Promise<string>;
  /** The name of QEMU's node for the guest's disk, whatever its backing files. */
  diskNode(): Promise<string>;
  /** Directs further writes of the guest into this empty disk over its current one, which stays as it is. The guest is paused. */
  layDisk(overlay: string): Promise<void>;
  /** QEMU's version, as `10.0.2`. */
  version(): Promise<string>;
  plugVsock(device: VsockDevice): Promise<void>;
  /** Unplugs the vsock device from a running guest. Idempotent. */
  unplugVsock(): Promise<void>;
  /** `turn` is the number of the drive's devices plugged before. */
  plugDrive(socket: string, tag: string, turn: number): Promise<void>;
  /** Unplugs a drive from a running guest that has not mounted it; the drive's process must still exist. Idempotent. */
  unplugDrive(turn: number): Promise<void>;
  /** Resolves once the guest runs, which is immediately unless it is paused. Rejects if QEMU has ended, or on cancellation. */
  running(signal: AbortSignal): Promise<void>;
  /**
   * Gives the guest memory in addition to its base, rounded up to whole blocks. The same size again is not sent: a guest would check its
   * memory each time.
   */
  resizeMemory(memoryMib: number, hardware: Pick<Hardware, "base_memory_mib">): Promise<void>;
  resume(): Promise<void>;
  pause(): Promise<void>;
  /** Whether the guest of an earlier daemon runs, was stopped, or is stalled. Throws when QEMU is in any other state. */
  find(): Promise<"running" | "paused" | "stalled">;
  end(): Promise<void>;
  /** Whether QEMU has paused the guest because the host's disk had no space for the guest's writes to its own. */
  stalled: Published<boolean>;
  /** Resolves once QEMU has completed the stop of the guest. */
  stopped(): Promise<void>;
  /** Resumes a stalled guest: QEMU retries the failed writes, and stalls again if they still fail. */
  unstall(): Promise<void>;
  /**
   * Why the guest has ended, as far as QEMU or the kernel reported it: its own panic, its own power-off, the host's memory, a message that
   * no QEMU sends, or unknown.
   */
  ending(): MachineEnding | null;
}

export type MachineEnding = "panic" | "power_off" | "oom" | "nonsense";

/** Either the kernel's own vhost-vsock, or a vhost-user device that serves a socket. */
export type VsockDevice = { kind: "kernel"; guest_cid: number } | { kind: "vhost-user"; socket: string };

/** Starts QEMU, paused before the guest's first instruction. `onProcess` is called before anything can fail. */
export async function startMachine(
  qemu: string,
  spec: MachineSpec,
  files: MachineFiles,
  { onProcess, enter, rank }: { onProcess(process: ProcessRecord): Promise<unknown>; enter: Enter; rank: Rank },
): Promise<Machine> {
  const argv = qemuArgv(qemu, spec);
  if (spec.root) await makeOwnRoot(spec.root, qemu, spec.root);
  const ownArgv = withUser(spec, argv);
  const onStarted = async (process: ProcessRecord) => {
    offerToOomKiller(process.pid);
    // If it has a group, the group's weight counts.
    giveWay(process.pid, enter ? "serving" : rank);
    await onProcess(process);
  };
  const known: Enter = enter && ((process) => Promise.all([onStarted(process), enter(process)]));
  const process = await startEntering("qemu", ownArgv, files.vmm_log, known, spec.vsock_file);
  try {
    if (!known) await onStarted(process);
    return await connectMachine(process, { sockets: spec.sockets, console_log: files.console_log });
  } catch (error) {
    await endProcess(process);
    throw error;
  }
}

function withUser({ user, root }: MachineSpec, argv: string[]): string[] {
  if (user === null) return argv;
  return root === null ? asUser(user, argv) : asUserWithin(root, user, argv);
}

/** Connects to the sockets of a running QEMU. */
export async function connectMachine(
  process: KnownProcess,
  at: { sockets: MachineSpec["sockets"]; console_log: string },
): Promise<Machine> {
  const log = new ConsoleLog(at.console_log);
  const listeners = new Set<(bytes: Uint8Array) => void>();
  // For a process that is not our child, closed sockets show its end.
  const processEnd = process.exited ?? new Promise<never>(() => {});
  // The monitor of this daemon's own child has had no client yet, and the child's start may take long on a busy host.
  const monitor = process.exited
    ? Qmp.connect(at.sockets.qmp, START_DEADLINE_MS, processEnd)
    : connectMonitor(at.sockets);
  const handlers = consoleHandlers(log, (bytes) => {
    for (const listener of listeners) listener(bytes);
  });
  const serial = connectWhenThere(at.sockets.console, START_DEADLINE_MS, processEnd, handlers);
  try {
    const [qmp, console] = await Promise.all([monitor, serial]);
    const exited = process.exited ?? qmp.closed.then(() => "its monitor closed");
    endWithMonitor(process, qmp).catch(() => {});
    return new RunningMachine({ ...process, exited }, qmp, console, listeners);
  } catch (error) {
    monitor.then((qmp) => qmp.close()).catch(() => {});
    serial.then((console) => console.terminate()).catch(() => {});
    log.close();
    throw error;
  }
}

/** A QEMU without a monitor cannot be controlled, and a QEMU that sends nonsense must not keep running: neither outlives its monitor. */
async function endWithMonitor(process: KnownProcess, qmp: Qmp): Promise<void> {
  const { by } = await qmp.closed;
  if (by === "us") return;
  if (by === "qemu" && process.exited) await within(process.exited, ENDING_MS, "QEMU's end").catch(() => {});
  await endProcess(process);
}

/** The monitor of a QEMU that had a client before: the spare one, if that client still holds the first. */
async function connectMonitor({ qmp, qmp_spare }: MachineSpec["sockets"]): Promise<Qmp> {
  const processEnd = new Promise<never>(() => {});
  try {
    return await Qmp.connect(qmp, GREETING_DEADLINE_MS, processEnd);
  } catch (error) {
    if (error instanceof NonsenseError) throw error;
    return await Qmp.connect(qmp_spare, GREETING_DEADLINE_MS, processEnd);
  }
}

class RunningMachine implements Machine {
  readonly process: HostProcess;
  readonly qmp: Qmp;
  readonly #console: Socket<undefined>;
  readonly #listeners: Set<(bytes: Uint8Array) => void>;
  readonly stalled = new Published(false);
  #ending: Exclude<MachineEnding, "oom"> | null = null;
  /** Blocks of memory in addition to its base that the guest was requested to take. */
  #plugged = 0;

  constructor(process: HostProcess, qmp: Qmp, console: Socket<undefined>, listeners: Set<(bytes: Uint8Array) => void>) {
    this.process = process;
    this.qmp = qmp;
    this.#console = console;
    this.#listeners = listeners;
    qmp.onEvent(({ event, data }) => {
      if (event === "GUEST_PANICKED") this.#ending = "panic";
      else if (event === "SHUTDOWN" && data.guest === true) this.#ending ??= "power_off";
      // If the host's disk is full, QEMU's `werror=enospc` stops the guest; other errors are passed on to the guest.
      else if (event === "BLOCK_IO_ERROR" && data.action === "stop") this.stalled.set(true);
      // QEMU reports such errors once a second at most, so this may be the first sign of one.
      else if (event === "STOP") this.#lookWhetherStalled().catch(() => {});
      else if (event === "RESUME") this.stalled.set(false);
    });
    qmp.closed.then(({ by }) => {
      if (by === "nonsense") this.#ending = "nonsense";
    });
  }

  ending(): MachineEnding | null {
    return this.#ending ?? (wasOomKilled(this.process) ? "oom" : null);
  }

  onConsole(listener: (bytes: Uint8Array) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  typeLine(line: string): void {
    this.#console.write(`${line}\n`);
  }

  async load(memoryFile: string): Promise<void> {
    await this.#setMigration();
    const finished = this.qmp.nextEvent(isMigrationEnd, MIGRATION_DEADLINE_MS);
    await this.qmp.execute("migrate-incoming", { uri: `file:${memoryFile}` });
    await this.#migrationDone(finished, "load");
  }

  async save(memoryFile: string, whenStill?: () => Promise<void>): Promise<void> {
    await this.#setMigration();
    // At the disk's speed: the default between hosts, 128 MiB a second, applies to files too.
    await this.qmp.execute("migrate-set-parameters", { "max-bandwidth": 0 });
    await this.qmp.execute("stop");
    try {
      await whenStill?.();
      const finished = this.qmp.nextEvent(isMigrationEnd, MIGRATION_DEADLINE_MS);
      await this.qmp.execute("migrate", { uri: `file:${memoryFile}` });
      await this.#migrationDone(finished, "save");
    } catch (error) {
      // A guest that resumes while it is being saved is paused when that is done, for no visible reason.
      await this.cancelSave();
      throw error;
    }
  }

  async cancelSave(): Promise<void> {
    const { status } = (await this.qmp.execute("query-migrate")) as { status?: string };
    if (status !== "active" && status !== "setup" && status !== "device") return;
    const over = this.qmp.nextEvent(isMigrationEnd, MIGRATION_DEADLINE_MS);
    await this.qmp.execute("migrate_cancel");
    await over;
  }

  async disk(): Promise<string> {
    // QEMU reports no file name for a disk with a backing file: its child has that.
    const child = fileOf(await this.diskNode());
    const nodes = (await this.qmp.execute("query-named-block-nodes", { flat: true })) as {
      file: string;
      "node-name": string;
    }[];
    const found = nodes.find((node) => node["node-name"] === child);
    if (!found) throw new Error("QEMU does not report the file of the guest's disk");
    return found.file;
  }

  async layDisk(overlay: string): Promise<void> {
    const below = await this.diskNode();
    // Names of nodes have at most 31 characters.
    const node = `d${crypto.randomUUID().replaceAll("-", "").slice(0, 20)}`;
    await this.qmp.execute("blockdev-add", { driver: "file", "node-name": fileOf(node), filename: overlay });
    const over = { driver: "qcow2", "node-name": node, file: fileOf(node), backing: null, discard: "unmap" };
    await this.qmp.execute("blockdev-add", over);
    await this.qmp.execute("blockdev-snapshot", { node: below, overlay: node });
  }

  async diskNode(): Promise<string> {
    const devices = (await this.qmp.execute("query-block")) as {
      qdev?: string;
      inserted?: { "node-name": string };
    }[];
    const disk = devices.find(({ qdev }) => qdev?.startsWith("/machine/peripheral/disk0"))?.inserted;
    if (!disk) throw new Error("QEMU reports no disk of the guest");
    return disk["node-name"];
  }

  async version(): Promise<string> {
    const { qemu } = (await this.qmp.execute("query-version")) as { qemu: Record<"major" | "minor" | "micro", number> };
    return `${qemu.major}.${qemu.minor}.${qemu.micro}`;
  }

  async plugVsock(device: VsockDevice): Promise<void> {
    const common = { id: VSOCK, bus: VSOCK_PORT, addr: "0x0" };
    if (device.kind === "kernel") {
      const vhostfd = String(DEVICE_DESCRIPTOR);
      const kernel = { driver: "vhost-vsock-pci", "guest-cid": device.guest_cid, vhostfd };
      await this.qmp.execute("device_add", { ...kernel, ...common });
      return;
    }
    const chardev = socketOf(VSOCK);
    await this.#addChardev(chardev, device.socket);
    await this.qmp.execute("device_add", { driver: "vhost-user-vsock-pci", chardev, ...common });
  }

  async unplugVsock(): Promise<void> {
    await this.#unplug(VSOCK);
  }

  async plugDrive(socket: string, tag: string, turn: number): Promise<void> {
    const id = driveOf(turn);
    const chardev = socketOf(id);
    await this.#addChardev(chardev, socket);
    await this.qmp.execute("device_add", {
      driver: "vhost-user-fs-pci",
      id,
      chardev,
      tag,
      bus: drivePort(turn),
      addr: "0x0",
    });
  }

  async unplugDrive(turn: number): Promise<void> {
    await this.#unplug(driveOf(turn));
  }

  async running(signal: AbortSignal): Promise<void> {
    const resumed = Promise.withResolvers<void>();
    const unlisten = this.qmp.onEvent(({ event }) => event === "RESUME" && resumed.resolve());
    const giveUp = () => resumed.reject(new QmpError("the wait was cancelled"));
    signal.addEventListener("abort", giveUp);
    this.qmp.closed.then(() => resumed.reject(new QmpError("QEMU has ended")));
    resumed.promise.catch(() => {});
    try {
      signal.throwIfAborted();
      const { running } = (await this.qmp.execute("query-status")) as { running?: boolean };
      if (running !== true) await resumed.promise;
    } finally {
      unlisten();
      signal.removeEventListener("abort", giveUp);
    }
  }

  async resizeMemory(memoryMib: number, hardware: Pick<Hardware, "base_memory_mib">): Promise<void> {
    const extraMib = Math.max(0, memoryMib - hardware.base_memory_mib);
    const blocks = Math.ceil(extraMib / MEMORY_BLOCK_MIB);
    if (blocks === this.#plugged) return;
    await this.qmp.execute("qom-set", {
      path: "/machine/peripheral/mem0",
      property: "requested-size",
      value: blocks * MEMORY_BLOCK_MIB * 1024 * 1024,
    });
    this.#plugged = blocks;
  }

  async resume(): Promise<void> {
    await this.qmp.execute("cont");
  }

  async pause(): Promise<void> {
    await this.qmp.execute("stop");
  }

  async find(): Promise<"running" | "paused" | "stalled"> {
    const status = await this.#lookWhetherStalled();
    if (this.stalled.value) return "stalled";
    // Saved, by a daemon that did not get to end or resume it.
    if (status === "postmigrate") return "paused";
    if (status !== "running" && status !== "paused") throw new Error(`QEMU reports the guest as ${status}`);
    return status;
  }

  async stopped(): Promise<void> {
    await this.#lookWhetherStalled();
  }

  async unstall(): Promise<void> {
    if (!this.stalled.value) return;
    await this.qmp.execute("cont");
    await this.#lookWhetherStalled();
  }

  /** QEMU's report of an error may arrive long after the guest has resumed: only its current state counts. */
  async #lookWhetherStalled(): Promise<string | undefined> {
    const { status } = (await this.qmp.execute("query-status")) as { status?: string };
    this.stalled.set(status === "io-error");
    return status;
  }

  async end(): Promise<void> {
    await endProcess(this.process);
    this.qmp.close();
  }

  /** Unplugs a device, and waits until the guest has released it. */
  async #unplug(id: string): Promise<void> {
    // The device is absent if an earlier attempt did half of the work.
    const devices = (await this.qmp.execute("qom-list", { path: "/machine/peripheral" })) as { name: string }[];
    if (devices.some(({ name }) => name === id)) {
      const unplugged = this.qmp.nextEvent(
        ({ event, data }) => event === "DEVICE_DELETED" && data.device === id,
        UNPLUG_DEADLINE_MS,
      );
      unplugged.catch(() => {});
      await this.qmp.execute("device_del", { id }).catch((error: unknown) => {
        // An earlier daemon may have started it.
        if (!String(error).includes("process of unplug")) throw error;
      });
      await unplugged;
    }
    const chardevs = (await this.qmp.execute("query-chardev")) as { label: string }[];
    if (chardevs.some(({ label }) => label === socketOf(id))) {
      await this.qmp.execute("chardev-remove", { id: socketOf(id) });
    }
  }

  async #addChardev(id: string, path: string): Promise<void> {
    const backend = { type: "socket", data: { addr: { type: "unix", data: { path } }, server: false } };
    const deadline = monotonicMs() + LISTEN_DEADLINE_MS;
    while (true) {
      try {
        await this.qmp.execute("chardev-add", { id, backend });
        return;
      } catch (error) {
        // The socket exists a moment before its process listens, and a trial connection would be its only one.
        if (!String(error).includes("Connection refused") || monotonicMs() > deadline) throw error;
        await sleep(1);
      }
    }
  }

  async #setMigration(): Promise<void> {
    // QEMU 8 has no mapped-ram: it writes a plain stream to the file, which loads more slowly.
    const known = (await this.qmp.execute("query-migrate-capabilities")) as { capability: string }[];
    const capabilities = known
      .map(({ capability }) => capability)
      .filter((capability) => MIGRATION_CAPABILITIES.includes(capability))
      .map((capability) => ({ capability, state: true }));
    await this.qmp.execute("migrate-set-capabilities", { capabilities });
  }

  async #migrationDone(finished: Promise<QmpEvent>, action: string): Promise<void> {
    const event = await finished;
    if (event.data.status === "completed") return;
    const info = (await this.qmp.execute("query-migrate")) as { "error-desc"?: string };
    throw new Error(`QEMU could not ${action} the snapshot: ${info["error-desc"] ?? String(event.data.status)}`);
  }
}

const VSOCK = "vsock0";
const driveOf = (turn: number) => `drive${turn}`;
/** The socket by which QEMU reaches the process of a device. */
const socketOf = (device: string) => `${device}-socket`;

/** The node of a disk's file, as argv.ts names it too. */
const fileOf = (node: string) => `${node}-file`;

const ENDS = ["completed", "failed", "cancelled"];

function isMigrationEnd(event: QmpEvent): boolean {
  return event.event === "MIGRATION" && ENDS.includes(String(event.data.status));
}
