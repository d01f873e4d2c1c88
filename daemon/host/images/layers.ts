/**
 * Owns the layers of a sandbox's disk. Each is a file that lies over another of the same directory, down to the sandbox's link to its
 * template's; the one on top is written to, those below never change. A directory that shares some of them, of a snapshot or of a
 * sandbox that began with one, has links to them under the same names: they are there for as long as anybody has them.
 *
 *   <sandbox> ─ disk-snap_2.qcow2 ── over ──▶ disk-snap_1.qcow2 ── over ──▶ disk-sbx_1.qcow2 ── over ──▶ base/…
 */
import { readdirSync } from "node:fs";
import { chmod, chown, link, rm } from "node:fs/promises";
import { join } from "node:path";
import { ownFile } from "../isolation/directories.ts";
import { baseIn, linkBase } from "./base.ts";
import { backingOf, copyOverlay, setBacking } from "./overlay.ts";

/** A disk that nobody writes to any more: whoever may enter a directory that has it may read it. */
const FROZEN = 0o444;
/** Sandboxes of older daemons have one without an id. */
const LAYER = /^disk(?:-\w+)?\.qcow2$/;

/** The layer that `id` is the first to write to, or of which it is what lies below. */
export function layerOver(id: string): string {
  return `disk-${id}.qcow2`;
}

/** The layers from the one on top down to the last above the base. Throws where one is missing, or names itself. */
export function layersBelow(directory: string, top: string): string[] {
  const layers: string[] = [];
  for (let name: string | null = top; name !== null && LAYER.test(name); name = backingOf(join(directory, name))) {
    if (layers.includes(name)) throw new Error(`the layers of ${join(directory, top)} go round`);
    layers.push(name);
  }
  return layers;
}

/** Puts an empty disk over another of the directory, for a user to write to. */
export async function makeLayer(
  directory: string,
  base: string,
  name: string,
  over: string,
  uid: number,
): Promise<void> {
  const path = join(directory, name);
  await copyOverlay(baseIn(base).empty, path);
  setBacking(path, over);
  await ownFile(path, uid);
}

interface Place {
  directory: string;
  base: string;
}

/** Links to a disk's layers, and to its base, in another directory. Again does what is missing. */
export async function linkLayers(from: Place, layers: readonly string[], to: Place): Promise<void> {
  await linkBase(baseIn(from.base), to.base);
  for (const name of layers) await linkTo(join(from.directory, name), join(to.directory, name));
}

/** A disk in `to` over that of a snapshot; returns its name. Again does what is missing, and begins the disk anew. */
export async function layOverSnapshot(
  { from, layers }: { from: Place; layers: readonly string[] },
  to: Place,
  id: string,
  uid: number,
): Promise<string> {
  await linkLayers(from, layers, to);
  const name = layerOver(id);
  const [top] = layers;
  if (top === undefined) throw new Error("the snapshot has no disk");
  await makeLayer(to.directory, to.base, name, top, uid);
  return name;
}

/** Nobody writes to it any more. */
export async function freeze(path: string): Promise<void> {
  if (process.geteuid?.() === 0) await chown(path, 0, 0);
  await chmod(path, FROZEN);
}

export async function linkTo(file: string, name: string): Promise<void> {
  await rm(name, { force: true });
  await link(file, name);
}

/** Removes the layers that the one on top does not lie over. */
export async function tidyLayers(directory: string, top: string): Promise<void> {
  const needed = layersBelow(directory, top);
  for (const name of layersIn(directory)) if (!needed.includes(name)) await rm(join(directory, name));
}

/** All of them. */
export function layersIn(directory: string): string[] {
  return readdirSync(directory).filter((name) => LAYER.test(name));
}
