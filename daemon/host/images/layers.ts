/**
 * Layers of a sandbox's disk. Each is a file with another of the same directory as its backing file, down to the sandbox's link to its
 * template's; the top one is written to, those below never change. A directory that shares some of them, of a snapshot or of a sandbox that
 * started from one, has hard links to them under the same names: they exist as long as one directory has them.
 *
 *     <sandbox> ─ disk-snap_2.qcow2 ── over ──▶ disk-snap_1.qcow2 ── over ──▶ disk-sbx_1.qcow2 ── over ──▶ base/…
 */
import { readdirSync } from "node:fs";
import { chmod, chown, link, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../core/service-error.ts";
import { synced } from "../files/synced.ts";
import { ownFile } from "../isolation/directories.ts";
import { baseIn, linkBase } from "./base.ts";
import { backingOf, copyOverlay, setBacking } from "./overlay.ts";

/** Mode of a disk that is never written any more: every process that may enter a directory with it may read it. */
const FROZEN = 0o444;
/** Sandboxes of older daemons have a layer without an ID. */
const LAYER = /^disk(?:-\w+)?\.qcow2$/;

/** The layer that `id` is the first to write to, or the layer directly above `id`'s. */
export function layerOver(id: string): string {
  return `disk-${id}.qcow2`;
}

/** The layers from the top one down to the last above the base. Throws if a layer is missing, or names itself. */
export function layersBelow(directory: string, top: string): string[] {
  const layers: string[] = [];
  for (let name: string | null = top; name !== null && LAYER.test(name); name = backingOf(join(directory, name))) {
    if (layers.includes(name)) throw new Error(`the layers of ${join(directory, top)} form a cycle`);
    layers.push(name);
  }
  return layers;
}

/** Creates an empty layer over another of the directory, for a user to write to; it is on disk when this resolves. Throws EEXIST. */
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
  await synced(path);
}

interface LayerPaths {
  directory: string;
  base: string;
}

/** Links to a disk's layers, and to its base, in another directory. A repeated call links missing ones. */
export async function linkLayers(from: LayerPaths, layers: readonly string[], to: LayerPaths): Promise<void> {
  await linkBase(baseIn(from.base), to.base);
  for (const name of layers) await linkTo(join(from.directory, name), join(to.directory, name));
  await synced(to.base);
}

/** Creates a disk in `to` over a snapshot's disk; returns its name, made from `id`, which no layer had before. */
export async function layOverSnapshot(
  { from, layers }: { from: LayerPaths; layers: readonly string[] },
  to: LayerPaths,
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

/** Makes a layer read-only. */
export async function freeze(path: string): Promise<void> {
  if (process.geteuid?.() === 0) await chown(path, 0, 0);
  await chmod(path, FROZEN);
}

/** Idempotent. Throws EEXIST if another file has the name. */
export async function linkTo(file: string, name: string): Promise<void> {
  try {
    await link(file, name);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST" || !(await isSame(file, name))) throw error;
  }
}

async function isSame(file: string, other: string): Promise<boolean> {
  const [one, two] = await Promise.all([stat(file), stat(other)]);
  return one.dev === two.dev && one.ino === two.ino;
}

/** Removes the layers that are not below the top one. */
export async function tidyLayers(directory: string, top: string): Promise<void> {
  const needed = layersBelow(directory, top);
  for (const name of layersIn(directory)) if (!needed.includes(name)) await rm(join(directory, name));
}

/** All of them. */
export function layersIn(directory: string): string[] {
  return readdirSync(directory).filter((name) => LAYER.test(name));
}
