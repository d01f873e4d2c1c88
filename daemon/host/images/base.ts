/**
 * A sandbox's links to its template: the files themselves under the sandbox's own names, as hard links, which cost no space. So it can be
 * started again from its disk, or from saved memory, after the template has been rebuilt or removed.
 *
 *     <sandbox> ─ disk-….qcow2 ── over ──▶ base/disk.qcow2 ── over ──▶ base/root.qcow2
 *               └ base ─ vmlinuz, initramfs.img, empty.qcow2
 */
import { link, symlink } from "node:fs/promises";
import { join } from "node:path";
import { BASE } from "../../core/config/paths.ts";
import { errnoOf } from "../../core/service-error.ts";
import { crossedDirectory } from "../isolation/directories.ts";
import { setBacking } from "./overlay.ts";

/** The files of a template by role; `disk` is null if its snapshot may not be used. */
export interface BaseFiles {
  kernel: string;
  initramfs: string;
  root: string;
  disk: string | null;
  /** An unwritten disk over the one or the other. */
  empty: string;
}

/** `root` is the backing file that a template's disk names. */
const NAMES: Record<keyof BaseFiles, string> = {
  kernel: "vmlinuz",
  initramfs: "initramfs.img",
  root: "root.qcow2",
  disk: "disk.qcow2",
  empty: "empty.qcow2",
};

/** The same files in a sandbox's own directory. */
export function baseIn(directory: string): BaseFiles & { disk: string } {
  const at = (role: keyof BaseFiles) => join(directory, NAMES[role]);
  return { kernel: at("kernel"), initramfs: at("initramfs"), root: at("root"), disk: at("disk"), empty: at("empty") };
}

/** A repeated call links missing files. If a template is on another disk than sandboxes, they depend on it as long as they exist. */
export async function linkBase(files: BaseFiles, directory: string): Promise<void> {
  crossedDirectory(directory);
  for (const [role, file] of Object.entries(files) as [keyof BaseFiles, string | null][]) {
    if (file === null) continue;
    const own = join(directory, NAMES[role]);
    await link(file, own).catch(async (error: unknown) => {
      const code = errnoOf(error);
      // A sandbox that booted cold has no disk of the snapshot.
      if (code === "EEXIST" || (code === "ENOENT" && role === "disk")) return;
      if (code !== "EXDEV") throw error;
      await symlink(file, own);
    });
  }
}

/** Sets the sandbox's own link to the template's disk as the backing file of its new disk. */
export function layOver(overlay: string, layer: "disk" | "root"): void {
  setBacking(overlay, `${BASE}/${NAMES[layer]}`);
}
