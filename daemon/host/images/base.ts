/**
 * Owns what a sandbox has of its template: the files themselves under names of its own, by hard links, which cost no space. So it
 * can be started again from its disk, or from memory that was saved, when the template has been built anew or is gone.
 *
 *   <sandbox> ─ disk-….qcow2 ── over ──▶ base/disk.qcow2 ── over ──▶ base/root.qcow2
 *             └ base ─ vmlinuz, initramfs.img, empty.qcow2
 */
import { link, symlink } from "node:fs/promises";
import { join } from "node:path";
import { BASE } from "../../core/paths.ts";
import { errnoOf } from "../../core/service-error.ts";
import { crossedDirectory } from "../isolation/directories.ts";
import { setBacking } from "./overlay.ts";

/** The files of a template by what they are; `disk` is null where its snapshot may not be used. */
export interface BaseFiles {
  kernel: string;
  initramfs: string;
  root: string;
  disk: string | null;
  /** A disk over the one or the other that nobody has written to. */
  empty: string;
}

/** `root` is what the disk of a template says that it lies over. */
const NAMES: Record<keyof BaseFiles, string> = {
  kernel: "vmlinuz",
  initramfs: "initramfs.img",
  root: "root.qcow2",
  disk: "disk.qcow2",
  empty: "empty.qcow2",
};

/** The same files in a sandbox's own directory of them. */
export function baseIn(directory: string): BaseFiles & { disk: string } {
  const at = (role: keyof BaseFiles) => join(directory, NAMES[role]);
  return { kernel: at("kernel"), initramfs: at("initramfs"), root: at("root"), disk: at("disk"), empty: at("empty") };
}

/** Again does what is missing. Where a template lies on another disk than sandboxes do, they depend on it for as long as they are. */
export async function linkBase(files: BaseFiles, directory: string): Promise<void> {
  crossedDirectory(directory);
  for (const [role, file] of Object.entries(files) as [keyof BaseFiles, string | null][]) {
    if (file === null) continue;
    const own = join(directory, NAMES[role]);
    await link(file, own).catch(async (error: unknown) => {
      const code = errnoOf(error);
      // One that booted by itself has no disk of the snapshot's.
      if (code === "EEXIST" || (code === "ENOENT" && role === "disk")) return;
      if (code !== "EXDEV") throw error;
      await symlink(file, own);
    });
  }
}

/** Says of a sandbox's new disk that it lies over its own link to the template's. */
export function layOver(overlay: string, which: "disk" | "root"): void {
  setBacking(overlay, `${BASE}/${NAMES[which]}`);
}
