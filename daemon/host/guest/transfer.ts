/**
 * A saved guest on its way to another host: its files, the properties that the other host needs to load it, and the owner of its files
 * there. Its directory has the layout of a snapshot's.
 */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { SavedPaths } from "../../core/config/paths.ts";
import { BASE } from "../../core/config/paths.ts";
import { saidOf } from "../../core/service-error.ts";
import { layersBelow } from "../images/layers.ts";
import { ownFile } from "../isolation/directories.ts";
import { processorOf } from "../processor.ts";
import type { GuestHost } from "./plan.ts";
import { readSaved, type Saved } from "./saved-state.ts";
import type { Guest } from "./start.ts";
import { hostFor, requireAsNew } from "./steps.ts";

/** Properties of the host on which a guest's memory was, or will be, saved. */
export interface SavedOn extends Pick<Saved, "qemu_version" | "processor" | "vsock"> {
  acceleration: Saved["machine"]["hardware"]["acceleration"];
  agent_generation: number;
}

/** Properties of the host on which guests are loaded. */
export interface LoadedOn {
  qemu_version: string | null;
  acceleration: SavedOn["acceleration"];
}

/** Null if only its disk was saved: that starts anywhere. */
export async function savedOn(paths: SavedPaths): Promise<SavedOn | null> {
  const { machine, memory, qemu_version, processor, vsock } = await readSaved(paths);
  if (memory === null) return null;
  const { hardware, agent_generation } = machine;
  return { qemu_version, processor, vsock, acceleration: hardware.acceleration, agent_generation };
}

/** The same for a running guest; null if it cannot be saved at all. */
export async function runsOn({ machine, record }: Guest): Promise<SavedOn | null> {
  const recorded = record();
  if (!recorded.machine) return null;
  const { hardware, agent_generation } = recorded.machine;
  return {
    ...{ qemu_version: await machine.version(), processor: processorOf(), acceleration: hardware.acceleration },
    ...{ agent_generation, vsock: recorded.vsock === null ? "kernel" : null },
  };
}

/** Why a guest cannot be loaded on this host; null when it can. */
export function whyUnfit(on: SavedOn, here: LoadedOn, host: () => GuestHost): string | null {
  const { acceleration, processor, qemu_version, vsock } = on;
  if (acceleration !== here.acceleration)
    return `it runs under ${acceleration}, and this host has ${here.acceleration}`;
  if (acceleration === "kvm" && processor !== processorOf()) return "this host has another processor";
  try {
    requireAsNew(here.qemu_version ?? "0", qemu_version);
    hostFor(host(), on, vsock ?? undefined);
    return null;
  } catch (error) {
    return saidOf(error);
  }
}

/** All that a saved guest consists of, by names below its directory; its logs do not belong to it. */
export async function filesOfSaved(paths: SavedPaths): Promise<string[]> {
  const { disk, memory } = await readSaved(paths);
  const base = existsSync(paths.base) ? await readdir(paths.base) : [];
  return [
    ...base.map((name) => `${BASE}/${name}`),
    ...layersBelow(paths.directory, disk),
    ...(memory === null ? [] : [memory]),
    basename(paths.saved),
  ];
}

/** Gives QEMU's user the disk that it writes to; the other files of a saved guest are only read. */
export async function ownSaved(paths: SavedPaths, uid: number): Promise<void> {
  const { disk } = await readSaved(paths);
  await ownFile(join(paths.directory, disk), uid);
}
