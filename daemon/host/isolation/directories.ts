/**
 * Access rights of the directories of guests. Their parents are crossed by every process and listed by none:
 *
 *     data_dir 711 ─ sandboxes 711 ─ <sandbox> 710 root:qemu ─ disk.qcow2 600 qemu
 *              │     rooms 711 ───── <room> 710 root:drive ──── drive 1777 drive    the group is root of its guests
 *              └──── templates 711 ─ … 711, files 640 root:templates    every QEMU's user is a member of that group
 *     runtime_dir 711 ─ g 711 ─ <sandbox> 711 ─ vm 710 qemu · vsock 710 vsock:qemu · fs 710 drive:qemu
 *
 * Files that the daemon trusts (process records, logs) are in directories that none of them may write.
 */
import { chmodSync, existsSync, lchownSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { chmod, chown, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { SandboxPaths } from "../../core/config/paths.ts";
import { runProgram } from "../process.ts";
import type { GuestUsers } from "./index.ts";

/** Others cross it, and need to know the name of the entry that they open. */
const CROSSED = 0o711;

/** A directory of an owner that members of a group may traverse. Idempotent. */
export async function ownedDirectory(path: string, uid: number, gid: number): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chown(path, uid, gid);
  await chmod(path, 0o710);
}

/** A directory that others cross. */
export function crossedDirectory(path: string): void {
  // A missing parent directory is on the path as well.
  if (!existsSync(dirname(path))) crossedDirectory(dirname(path));
  mkdirSync(path, { recursive: true, mode: 0o700 });
  setMode(path, CROSSED);
}

/** Lets only the users of QEMU read the files in a template's version. Without a group they are root, which may. */
export function readableTemplate(directory: string, group: number | null): void {
  for (const crossed of [dirname(directory), directory]) setMode(crossed, CROSSED);
  if (group === null || process.geteuid?.() !== 0) return;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(directory, entry.name);
    // A change of owner also makes a file look changed.
    if (lstatSync(path).gid !== group) lchownSync(path, 0, group);
    setMode(path, 0o640);
  }
}

/** Only if the mode differs: a change of mode makes a file look changed. */
function setMode(path: string, mode: number): void {
  if (existsSync(path) && (statSync(path).mode & 0o7777) !== mode) chmodSync(path, mode);
}

/** Gives a file to a user, with access for that user alone. */
export async function ownFile(path: string, uid: number): Promise<void> {
  await chown(path, uid, uid);
  await chmod(path, 0o600);
}

/** Gives a directory and all its content to a user; link targets are not changed. */
export async function ownTree(path: string, uid: number): Promise<void> {
  await runProgram(["chown", "--recursive", "--no-dereference", `${uid}:${uid}`, path], 60_000);
}

/** Marks a room's directory with the host user of its guests' root; the drive in it belongs to that user. */
export async function markDrive(drive: string, root: number): Promise<void> {
  if (process.geteuid?.() !== 0) return;
  await chown(dirname(drive), 0, root);
  await chmod(dirname(drive), root === 0 ? 0o700 : 0o710);
  await chown(drive, root, root);
}

/** The host's number of root in the guests of a room: the mark of the room's directory, which no guest can change. */
export function driveRootOf(drive: string): number {
  return statSync(dirname(drive)).gid;
}

/** The directories of one sandbox except that of its drive's socket, which gets its owner later. */
export async function makeGuestDirectories(paths: SandboxPaths, users: GuestUsers | null): Promise<void> {
  const [qemu, vsock] = users ? [users.qemu.uid, users.vsock.uid] : [0, 0];
  for (const above of [dirname(paths.directory), dirname(paths.runtime)]) crossedDirectory(above);
  await ownedDirectory(paths.directory, 0, qemu);
  crossedDirectory(paths.runtime);
  await ownedDirectory(paths.vm_sockets, qemu, qemu);
  await ownedDirectory(paths.vsock_sockets, vsock, qemu);
}
