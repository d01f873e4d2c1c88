/**
 * Saves a running guest to disk at one instant: memory and devices, and its disk as it is then.
 *
 *     to hibernate   hold its connection → release its vsock device → pause and save ⇒ recorded as whole; it never resumes
 *     a snapshot     the same, then another layer on its disk → resume ⇒ recorded as whole
 *     of its disk    its file system quiesced → pause → another layer → resume ⇒ recorded as whole
 *
 * A vhost-user vsock device cannot be saved, so it is unplugged first, and another is plugged when the guest resumes. The kernel's is saved
 * with the rest.
 *
 * Saved memory belongs to the disk as it is then, and a running guest changes the disk. So a hibernating guest may resume only while
 * nothing is recorded; and a snapshot's disk is a layer that is never written any more.
 */

import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type { SnapshotId } from "../../../shared/ids.ts";
import { monotonicMs } from "../../core/clock.ts";
import type { SavedPaths } from "../../core/config/paths.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { describeError } from "../../core/service-error.ts";
import { synced } from "../files/synced.ts";
import { correctClock } from "../guest-link/clock.ts";
import { freezeDisk, thawDisk } from "../guest-link/disk.ts";
import { freeze, layerOver, layersBelow, linkLayers, linkTo, makeLayer } from "../images/layers.ts";
import { ownFile } from "../isolation/directories.ts";
import type { Machine } from "../machine/machine.ts";
import { MemoryHoles } from "../machine/memory-holes.ts";
import { processorOf } from "../processor.ts";
import type { SavedMachine } from "./plan.ts";
import { replaceVsock } from "./replace-vsock.ts";
import { bytesOf, forgetSaved, keepSaved, readSaved, type SavedFacts } from "./saved-state.ts";
import { OLDER, whyIneligible } from "./snapshot-eligibility.ts";
import type { GuestParts } from "./steps.ts";

/** A guest that is too busy to answer by then is not saved. */
const HOLD_DEADLINE_MS = 10_000;
/** How long a running agent may be silent. */
const AGENT_DEADLINE_MS = 30_000;

/** The guest cannot be saved at all, now or later. */
export class UnsavableError extends Error {
  override name = "UnsavableError";
}

/** The guest was not saved, and does not resume. */
export class StrandedError extends Error {
  override name = "StrandedError";
}

/** A requested snapshot. */
export interface SnapshotRequest {
  snapshot_id: SnapshotId;
  /** Memory, device state and disk; or the disk alone. */
  mode: "full" | "disk";
  /** Target; nothing is there. */
  into: SavedPaths;
  /** Awaited once the snapshot can be taken, before the guest is paused; if it throws there is no snapshot. */
  whenReady?(signal: AbortSignal): Promise<void>;
  /**
   * Of memory and disk: awaited once all of it is taken, before the guest resumes. If it throws, or the guest ends, there is no snapshot.
   */
  whileStill?(signal: AbortSignal): Promise<void>;
}

const OLD_AGENT = "the agent in it is older than this roomd, and cannot become another sandbox";

/** Result of a snapshot. */
export interface SnapshotTaken {
  /** How long the guest was paused. */
  paused_ms: number;
  /** Disk usage that it does not share with its parent: memory, and the layer written since. */
  size_bytes: number;
}

/** Layers of the snapshot's disk, and the time that the guest was paused. */
interface Cut {
  layers: string[];
  paused_ms: number;
}

/**
 * Resolves once the guest is paused and whole on disk: it must not resume, and is to be ended. Throws if it resumed as before;
 * StrandedError if it did not. None of its parts may be replaced in the meantime.
 */
export async function saveGuest(parts: GuestParts, signal: AbortSignal): Promise<void> {
  const { paths } = parts.plan;
  const facts = savable(parts);
  const machine = machineOf(parts);
  const disk = basename(await machine.disk());
  await letGo(parts, signal);
  try {
    await saveMemory(parts, machine, "ends");
    await synced(paths.memory);
    await keepSaved(paths, await factsOf(parts, machine, facts, { disk, memory: basename(paths.memory) }));
  } catch (error) {
    await goOn(parts, machine, signal);
    throw error;
  }
}

/**
 * Takes a snapshot; resolves once it is whole and the guest answers again. Throws if there is no snapshot, and the guest resumed as before;
 * StrandedError if it did not. None of its parts may be replaced in the meantime.
 */
export async function snapshotGuest(
  parts: GuestParts,
  request: SnapshotRequest,
  signal: AbortSignal,
): Promise<SnapshotTaken> {
  const { host, plan } = parts;
  const { into } = request;
  const machine = machineOf(parts);
  const facts = request.mode === "full" ? copiable(parts) : machineFactsOf(parts);
  const top = basename(await machine.disk());
  const { directory, base } = plan.paths;
  const next = nextLayer();
  requireFewLayers(directory, top);
  // An earlier attempt of the same call may have been interrupted.
  await rm(into.directory, { recursive: true, force: true });
  try {
    // Before the guest is paused: this needs no process, but some time.
    await makeLayer(directory, base, next, top, host.isolation.usersOf(plan.sandbox_id)?.qemu.uid ?? 0);
    await mkdir(into.directory, { recursive: true, mode: 0o700 });
    await request.whenReady?.(signal);
    const cut = request.mode === "full" ? cutWithMemory : cutDisk;
    const { layers, paused_ms } = await cut(parts, machine, { ...request, top, next }, signal);
    const size_bytes = bytesOf(join(directory, top)) + bytesOf(into.memory);
    // Including layers that an aborted snapshot has left: from now on they are read by others than their user.
    for (const layer of layers) await freeze(join(directory, layer));
    await linkLayers(plan.paths, layers, into);
    await Promise.all(layers.map((layer) => synced(join(into.directory, layer))));
    if (request.mode === "full") {
      await freeze(into.memory);
      await synced(into.memory);
    }
    const memory = request.mode === "full" ? basename(into.memory) : null;
    await keepSaved(into, await factsOf(parts, machine, facts, { disk: top, memory }));
    return { paused_ms, size_bytes };
  } catch (error) {
    await rm(into.directory, { recursive: true, force: true });
    throw error;
  }
}

/** A name never used before: an existing layer would be written to. */
const nextLayer = () => layerOver(crypto.randomUUID().replaceAll("-", ""));

/** Each layer costs QEMU a descriptor and memory, and every read a lookup. */
const MAX_LAYERS = 64;

/** Throws UnsavableError. */
function requireFewLayers(directory: string, top: string): void {
  const { length } = layersBelow(directory, top);
  if (length >= MAX_LAYERS)
    throw new UnsavableError(`its disk has ${length} layers of snapshots, which is the maximum`);
}

/**
 * The same for a hibernated guest, `uid` being its QEMU's user: its saved state is shared, and its disk gets another layer. Throws if there
 * is no snapshot; it stays hibernated as before.
 */
export async function snapshotSaved(
  paths: SavedPaths,
  { into }: Pick<SnapshotRequest, "into">,
  uid: number,
): Promise<SnapshotTaken> {
  const { format: _format, ...saved } = await readSaved(paths);
  const { disk: top, memory } = saved;
  if (memory === null) throw new UnsavableError("its memory was not saved");
  if (!saved.restores) throw new UnsavableError(OLD_AGENT);
  requireFewLayers(paths.directory, top);
  const next = nextLayer();
  await rm(into.directory, { recursive: true, force: true });
  try {
    await mkdir(into.directory, { recursive: true, mode: 0o700 });
    await makeLayer(paths.directory, paths.base, next, top, uid);
    await keepSaved(paths, { ...saved, disk: next });
    // From here on the former top layer is never written.
    const layers = layersBelow(paths.directory, top);
    for (const layer of layers) await freeze(join(paths.directory, layer));
    await freeze(join(paths.directory, memory));
    await linkLayers(paths, layers, into);
    await linkTo(join(paths.directory, memory), into.memory);
    await keepSaved(into, { ...saved, memory: basename(into.memory) });
    return { paused_ms: 0, size_bytes: bytesOf(join(into.directory, top)) + bytesOf(into.memory) };
  } catch (error) {
    await rm(into.directory, { recursive: true, force: true });
    throw error;
  }
}

type CutRequest = SnapshotRequest & { top: string; next: string };

async function cutWithMemory(
  parts: GuestParts,
  machine: Machine,
  { into, top, next, whileStill }: CutRequest,
  signal: AbortSignal,
): Promise<Cut> {
  const { paths } = parts.plan;
  const { directory } = paths;
  await letGo(parts, signal);
  let stoppedAt: number;
  try {
    stoppedAt = await saveMemory(parts, machine, "goes on");
    await rename(paths.memory, into.memory);
    await machine.layDisk(join(directory, next));
    await faultPoint("snapshot.cut");
    await whileStill?.(signal);
  } catch (error) {
    await goOn(parts, machine, signal);
    throw error;
  }
  const layers = layersBelow(directory, top);
  const goesOnAt = await goOn(parts, machine, signal);
  return { layers, paused_ms: Math.round(goesOnAt - stoppedAt) };
}

async function cutDisk(
  parts: GuestParts,
  machine: Machine,
  { top, next }: CutRequest,
  signal: AbortSignal,
): Promise<Cut> {
  const { connection, plan } = parts;
  const { directory } = plan.paths;
  await freezeDisk(await connection.link(HOLD_DEADLINE_MS, signal));
  // If a step fails from here on, the guest's disk thaws automatically: its freeze has a time limit.
  await connection.hold(HOLD_DEADLINE_MS);
  const stoppedAt = monotonicMs();
  const laid = answering(parts, () => machine.pause()).then(() => machine.layDisk(join(directory, next)));
  await laid.catch(() => {});
  const layers = layersBelow(directory, top);
  try {
    await answering(parts, () => machine.resume());
    connection.release();
  } catch (error) {
    throw new StrandedError(describeError(error), { cause: error });
  }
  const paused_ms = Math.round(monotonicMs() - stoppedAt);
  const link = await connection.link(AGENT_DEADLINE_MS, signal);
  const inTime = await thawDisk(link);
  await correctClock(link);
  await laid;
  if (!inTime) throw new Error("its disk was thawed before the snapshot was complete");
  return { layers, paused_ms };
}

/**
 * Resolves once nothing is on its way to the guest, and a device that cannot be saved is unplugged. If it throws, the guest is as before.
 */
async function letGo(parts: GuestParts, signal: AbortSignal): Promise<void> {
  const machine = machineOf(parts);
  await parts.connection.hold(HOLD_DEADLINE_MS);
  if (isSavedWith(parts)) return;
  try {
    await parts.endpoint?.close();
    await machine.unplugVsock();
  } catch (error) {
    await goOn(parts, machine, signal);
    throw error;
  }
}

/** Returns the time at which the guest was stopped. */
async function saveMemory(parts: GuestParts, machine: Machine, then: "goes on" | "ends"): Promise<number> {
  const { host, plan } = parts;
  const { memory } = plan.paths;
  // An existing file may be another's, by a link. QEMU may write into existing files, and create none.
  await rm(memory, { force: true });
  await writeFile(memory, "", { mode: 0o600, flag: "wx" });
  await ownFile(memory, host.isolation.usersOf(plan.sandbox_id)?.qemu.uid ?? 0);
  using holes = then === "ends" ? null : holesOf(parts, machine);
  const stoppedAt = monotonicMs();
  try {
    // The state of the drive's process is saved too.
    await answering(parts, () => machine.save(memory, () => keepsSize(parts, holes?.note())));
  } finally {
    await keepsSize(parts, holes?.restore());
  }
  return stoppedAt;
}

/** Frees the guest memory on the host that saving adds; null if that is not possible. */
function holesOf(parts: GuestParts, machine: Machine): MemoryHoles | null {
  const { host, plan } = parts;
  try {
    return new MemoryHoles(machine.process, host.isolation.usersOf(plan.sandbox_id)?.qemu ?? null);
  } catch (error) {
    sayLarger(parts, error);
    return null;
  }
}

/** The guest is saved, and resumes, even if this fails. */
async function keepsSize(parts: GuestParts, work: Promise<void> | undefined): Promise<void> {
  await work?.catch((error: unknown) => sayLarger(parts, error));
}

function sayLarger({ host, plan: { sandbox_id } }: GuestParts, error: unknown): void {
  host.log.warn("a guest that is saved has more memory after it", { sandbox_id, error: describeError(error) });
}

/** Whether the vsock device is saved with the guest: that of the kernel. */
function isSavedWith({ endpoint }: GuestParts): boolean {
  return endpoint?.device.kind === "kernel";
}

/**
 * Resumes the guest, over another vsock device if it had lost its own; returns the time at which its processors resumed. Throws
 * StrandedError.
 */
async function goOn(parts: GuestParts, machine: Machine, signal: AbortSignal): Promise<number> {
  const { plan, connection } = parts;
  try {
    await forgetSaved(plan.paths);
    await answering(parts, () => machine.resume());
    const goesOnAt = monotonicMs();
    if (isSavedWith(parts)) connection.release();
    else await replaceVsock(parts, signal);
    await correctClock(await connection.link(AGENT_DEADLINE_MS, signal));
    return goesOnAt;
  } catch (error) {
    throw new StrandedError(describeError(error), { cause: error });
  }
}

/** QEMU needs answers from the drive's process, held or not. */
async function answering<T>({ host, share }: GuestParts, work: () => Promise<T>): Promise<T> {
  return await (share ? host.restraints.answering(share, work) : work());
}

function machineOf({ machine }: GuestParts): Machine {
  if (!machine) throw new Error("there is no machine to save");
  return machine;
}

async function factsOf(
  parts: GuestParts,
  machine: Machine,
  facts: SavedMachine,
  files: Pick<SavedFacts, "disk" | "memory">,
): Promise<SavedFacts> {
  return {
    qemu_version: await machine.version(),
    processor: processorOf(),
    machine: facts,
    ...files,
    vsock: isSavedWith(parts) ? "kernel" : null,
    restores: parts.connection.state.value.restores === true,
    known: parts.connection.acquaintance,
  };
}

/** Its machine. Throws UnsavableError. */
function machineFactsOf({ record }: GuestParts): SavedMachine {
  const { machine } = record.now;
  if (!machine) throw new UnsavableError(OLDER);
  return machine;
}

/** The same for a guest that can be copied. Throws UnsavableError. */
function copiable(parts: GuestParts): SavedMachine {
  if (parts.connection.state.value.restores !== true) {
    throw new UnsavableError(OLD_AGENT);
  }
  return savable(parts);
}

/** The same for a guest with memory that can be saved. Throws UnsavableError. */
function savable(parts: GuestParts): SavedMachine {
  const why = whyIneligible(parts.record.now, parts.share !== undefined);
  if (why !== null) throw new UnsavableError(why);
  return machineFactsOf(parts);
}
