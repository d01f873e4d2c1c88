/**
 * The boot ID of a sandbox. The kernel's boot ID is part of the saved memory, so a fork would share it with its source. At boot, a file
 * with a separate ID is bind-mounted over it; it is rewritten for each sandbox.
 *
 * A second procfs stays mounted as well: in a user namespace the kernel allows a new procfs only while one is fully visible
 * (fs/namespace.c, mnt_already_visible), which bubblewrap and rootless containers need.
 */
import { constants, mkdirSync, openSync, writeSync } from "node:fs";
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { randomHex } from "./random.ts";

const KERNELS = "/proc/sys/kernel/random/boot_id";
const PLACE = "/run/roomd";
const FILE = `${PLACE}/boot_id`;
const VISIBLE_PROC = `${PLACE}/proc`;
const ROOTS_ALONE = 0o700;
const READABLE = 0o444;
const { bind, remount, readonly, nosuid, nodev, noexec } = libc.MountFlag;

/** Stays open: root may remove or replace the file, but not the mount. */
let file: number | null = null;

/** Mounts the boot ID. On failure, the kernel's own boot ID stays. */
export function mountBootId(): void {
  try {
    mkdirSync(VISIBLE_PROC, { recursive: true, mode: ROOTS_ALONE });
    libc.mount("proc", VISIBLE_PROC, "proc", nosuid | nodev | noexec, null);
    const { O_RDWR, O_CREAT, O_EXCL } = constants;
    file = openSync(FILE, O_RDWR | O_CREAT | O_EXCL, READABLE);
    renewBootId();
    libc.mount(FILE, KERNELS, "", bind, null);
    libc.mount("", KERNELS, "", bind | remount | readonly | nosuid | nodev | noexec, null);
  } catch (error) {
    log("boot id", error);
  }
}

/** Writes a new boot ID, from the kernel's random numbers. */
export function renewBootId(): void {
  if (file !== null) writeSync(file, `${uuidOf(randomHex(16))}\n`, 0);
}

/** A random UUID (RFC 9562, version 4) from 32 hex digits. */
export function uuidOf(hex: string): string {
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  const digits = `${hex.slice(0, 12)}4${hex.slice(13, 16)}${variant}${hex.slice(17)}`;
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
