/**
 * Leftovers of a guest on the host, found by their names alone: processes by the sockets in their arguments, directory of sockets, disk.
 * Nothing in memory is needed, so it serves for guests of an earlier daemon and for leftovers of a crash between two steps. Another
 * daemon's guests have another runtime_dir in their arguments.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { SandboxPaths, SavedPaths } from "../../core/config/paths.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { layersIn } from "../images/layers.ts";
import { mayBeOurs } from "../isolation/own-users.ts";
import { endProcess, groupOf, isAlive, type ProcessRecord, processOf } from "../process.ts";
import { readRecord } from "./record.ts";
import { forgetSaved } from "./saved-state.ts";

const SANDBOX_ID = /^sbx_[0-9A-Z]{26}/;
/** Options of virtiofsd and vhost-device-vsock with a guest's socket as their value. */
const SOCKET_OPTIONS = ["--socket-path", "--socket", "--uds-path"];
/** A step in progress may start one more process while the first ones are being ended. */
const ROUNDS = 5;

/** New processes that are checked in one turn of the event loop: half a millisecond's work. */
const LOOKED_AT = 32;

/** Other users may start processes continuously; a missed process of roomd is found by the next scan. */
const MAX_PASSES = 8;

/** Processes that serve guests, by sandbox. */
export type GuestProcesses = ReadonlyMap<string, readonly ProcessRecord[]>;

/** By directory of sockets: the previous scan, and the scan that starts once that is over. */
const looks = new Map<string, { before: Promise<unknown>; coming: Promise<GuestProcesses> | null }>();

/**
 * The processes that serve guests below this directory of sockets, as they are when it resolves. There may be thousands: other work gets
 * its turns in between, and all callers during a scan share the next scan.
 */
export function guestProcesses(guests: string): Promise<GuestProcesses> {
  const shared = looks.get(guests) ?? { before: Promise.resolve(), coming: null };
  looks.set(guests, shared);
  shared.coming ??= shared.before.then(() => {
    const found = look(guests);
    shared.coming = null;
    shared.before = found.catch(() => {});
    return found;
  });
  return shared.coming;
}

async function look(guests: string): Promise<GuestProcesses> {
  const found = new Map<string, ProcessRecord[]>();
  const seen = new Set<string>();
  const unseen = () => readdirSync("/proc").filter((name) => /^\d+$/.test(name) && !seen.has(name));
  const pieces = new Pieces(loopTime, "host", "host.processes");
  for (let pass = 1; ; pass++) {
    const names = unseen();
    // In one turn: no process of ours can appear in between.
    const isShort = names.length <= LOOKED_AT;
    for (const name of names) {
      const turn = isShort ? null : pieces.next();
      if (turn) await turn;
      seen.add(name);
      const pid = Number(name);
      const sandboxId = mayBeOurs(pid) ? servedBy(argumentsOf(pid), guests) : null;
      const process = sandboxId === null ? null : processOf(pid);
      if (sandboxId !== null && process) found.set(sandboxId, [...(found.get(sandboxId) ?? []), process]);
    }
    if (isShort || pass === MAX_PASSES) return found;
  }
}

/** The sandbox with sockets below `guests` that these arguments name, as we pass them to its processes; null if absent. Pure. */
export function servedBy(argv: readonly string[], guests: string): string | null {
  for (const [index, word] of argv.entries()) {
    const path = SOCKET_OPTIONS.includes(argv[index - 1] ?? "") ? word : chardevPath(word);
    if (!path?.startsWith(`${guests}/`)) continue;
    const [sandboxId] = SANDBOX_ID.exec(path.slice(guests.length + 1)) ?? [];
    if (sandboxId) return sandboxId;
  }
  return null;
}

/** Ends every process of a guest, recorded or found by a scan. Throws when one does not end. */
export async function endProcesses(paths: SandboxPaths): Promise<void> {
  const recorded = readRecord(paths.processes);
  const known = [recorded?.qemu, recorded?.virtiofsd, recorded?.vsock].flatMap((process) => process ?? []);
  // Immediately, since finding the others takes a while; the loop below waits for it.
  for (const process of known) endProcess(process).catch(() => {});
  for (let round = 1; ; round++) {
    const found = (await guestProcesses(dirname(paths.runtime))).get(basename(paths.runtime)) ?? [];
    const alive = [...known, ...found].filter(isAlive);
    if (alive.length === 0) return;
    if (round > ROUNDS) throw new Error(`its processes ${alive.map(({ pid }) => pid).join(", ")} have not ended`);
    await Promise.all(alive.map((process) => endProcess(process)));
  }
}

/**
 * Ends processes that serve a guest and are not in its record: leftovers of a daemon that was killed between starting a part and recording
 * it. They are killed before this returns its promise. Rejects if one does not end.
 */
export async function endUnrecorded(paths: SandboxPaths, serving: readonly ProcessRecord[]): Promise<void> {
  const recorded = readRecord(paths.processes);
  if (!recorded) return;
  const leaders = [recorded.qemu, recorded.virtiofsd, recorded.vsock].map((process) => process?.pid);
  const strays = serving.filter(({ pid }) => !leaders.includes(groupOf(pid) ?? pid));
  await Promise.all(strays.map((process) => endProcess(process)));
}

/** Ends every process of a guest, then removes its sockets, its disk and its saved state; its logs stay. Throws if something remains. */
export async function freeLeftovers(paths: SandboxPaths): Promise<void> {
  await endLeft(paths);
  await removeDisk(paths);
}

/** Ends every process of a guest and removes its sockets. Throws if something remains. */
export async function endLeft(paths: SandboxPaths): Promise<void> {
  // The record of its processes is removed last: it identifies them until they have ended.
  await endProcesses(paths);
  await rm(paths.runtime, { recursive: true, force: true });
}

/** Removes a guest's disk and its saved state. */
export async function removeDisk(paths: SavedPaths): Promise<void> {
  const { directory, base } = paths;
  if (!existsSync(directory)) return;
  await forgetSaved(paths);
  for (const layer of layersIn(directory)) await rm(join(directory, layer), { force: true });
  await rm(base, { recursive: true, force: true });
}

/** Whether a guest left sockets or a disk. */
export function hasLeftovers(paths: SandboxPaths): boolean {
  return existsSync(paths.runtime) || (existsSync(paths.directory) && layersIn(paths.directory).length > 0);
}

/** The path in `socket,id=qmp,path=/run/…,server=on`, in which the path's commas are doubled. */
function chardevPath(word: string): string | null {
  if (!word.startsWith("socket,")) return null;
  const [, path] = /,path=((?:[^,]|,,)*)/.exec(word) ?? [];
  return path?.replaceAll(",,", ",") ?? null;
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}
