/**
 * The root file system of one QEMU: the host's programs, read-only, some devices, and its own directories. It is made of empty directories
 * and a table of mounts; `argv.ts` has the process mount the table in a separate namespace and change to it.
 *
 *     <root> ─ usr, bin → usr/bin, lib → usr/lib, …, etc/ld.so.cache    the host's, read-only
 *            ├ dev/null, dev/kvm, …                                     no others
 *            ├ <data_dir>/sandboxes/<id>, <runtime_dir>/g/<id>          writable, as far as files let its user
 *            ├ <data_dir>/templates/<id>/<version>                      read-only
 *            └ old, proc                                                empty once it has changed to it
 *
 * Every path is the same as on the host, so that paths in messages to QEMU, and from QEMU, are valid on both sides.
 */
import { chmod, lstat, mkdir, readlink, realpath, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { errnoOf } from "../../core/service-error.ts";
import { absent } from "../files/gone.ts";

export interface OwnRoot {
  /** The root; removed with the directory around it. */
  directory: string;
  /** The mounts of the root, in the format of fstab(5). */
  table: string;
}

/** Directories that a QEMU sees besides the host's programs. */
export interface VisibleDirectories {
  readOnly: readonly string[];
  writable: readonly string[];
}

/** Program directories of the host. A QEMU outside of them adds its directory, or the parent if that is a `bin`. */
const PROGRAMS = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const SYSTEM_FILES = [
  ...["/etc/ld.so.cache", "/etc/alternatives"],
  // QEMU reads the size of huge pages here, and aligns a guest's memory to it.
  "/sys/kernel/mm/transparent_hugepage",
];
const DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/kvm"];

const READ_ONLY = "bind,ro,nosuid,nodev";
const WRITABLE = "bind,nosuid,nodev,noexec";
const DEVICE = "bind,nosuid,noexec";

/** Creates the directories and the table. Idempotent. */
export async function makeOwnRoot(
  { directory, table }: OwnRoot,
  program: string,
  seen: VisibleDirectories,
): Promise<void> {
  await openDirectory(directory, dirname(directory));
  for (const name of ["old", "proc"]) await openDirectory(join(directory, name), directory);
  const mounts = [[directory, directory, READ_ONLY]];
  const show = async (path: string, options: string, look: typeof stat = stat): Promise<void> => {
    const there = await look(path).catch(absent);
    if (there === null) return;
    const at = join(directory, path);
    await openDirectory(dirname(at), directory);
    if (there.isSymbolicLink()) {
      await symlink(await readlink(path), at).catch(unlessThere);
      return;
    }
    if (there.isDirectory()) await openDirectory(at, directory);
    else await writeFile(at, "", { flag: "a" });
    mounts.push([path, at, options]);
  };
  for (const path of PROGRAMS) await show(path, READ_ONLY, lstat as typeof stat);
  for (const path of SYSTEM_FILES) await show(path, READ_ONLY);
  for (const path of DEVICES) await show(path, DEVICE);
  for (const path of await elsewhere(program)) await show(path, READ_ONLY);
  for (const path of outermost(seen.readOnly)) await show(path, READ_ONLY);
  for (const path of outermost(seen.writable)) await show(path, WRITABLE);
  // Unmounted again: umount finds the mounts through it.
  mounts.push(["/proc", join(directory, "proc"), "bind"]);
  const lines = mounts.map(([from = "", to = "", options]) => `${escaped(from)} ${escaped(to)} none ${options} 0 0\n`);
  await writeFile(table, lines.join(""), { mode: 0o600 });
}

/** The directories of these files, and of the targets of links. */
export async function directoriesOf(files: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const file of files) {
    const there = await lstat(file).catch(absent);
    if (there === null) continue;
    found.add(dirname(file));
    if (there.isSymbolicLink()) found.add(dirname(await realpath(file)));
  }
  return [...found];
}

/** Directories that are not inside another. Pure. */
export function outermost(directories: readonly string[]): string[] {
  const isWithin = (path: string, above: string) => path !== above && !relative(above, path).startsWith("..");
  return [...new Set(directories)].filter((path) => !directories.some((above) => isWithin(path, above)));
}

/** Makes a directory that all users enter and list, with its parents from `above` on, whatever the daemon's umask. */
async function openDirectory(path: string, above: string): Promise<void> {
  if (path === above) return;
  try {
    await mkdir(path);
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return;
    if (errnoOf(error) !== "ENOENT") throw error;
    await openDirectory(dirname(path), above);
    return await openDirectory(path, above);
  }
  await chmod(path, 0o755);
}

async function elsewhere(program: string): Promise<string[]> {
  const path = program.startsWith("/") ? await realpath(program).catch(() => null) : null;
  if (path === null || PROGRAMS.some((above) => path.startsWith(`${above}/`))) return [];
  const own = [...new Set([dirname(program), dirname(path)])];
  return own.map((directory) => directory.replace(/\/bin$/, "") || directory);
}

function unlessThere(error: unknown): void {
  if (errnoOf(error) !== "EEXIST") throw error;
}

/** Escapes blanks, tabs, ends of lines and backslashes as fstab(5) requires. */
function escaped(path: string): string {
  return path.replace(/[\s\\#]/g, (found) => `\\${found.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
