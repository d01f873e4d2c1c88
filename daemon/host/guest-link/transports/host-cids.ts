/**
 * Search for free CIDs. They are shared by the whole host: another daemon's guests have some, and any program's virtual machines may. There
 * is no list. A process that opens the device and takes a CID gets an error if it is in use, so each is tried.
 */
import { dlopen, ptr } from "bun:ffi";
import { randomInt } from "node:crypto";
import { close, openSync } from "node:fs";
import { errnoOf } from "../../../core/service-error.ts";
import { check } from "../../files/libc.ts";

/** _IOW(0xAF, 0x60, __u64) of linux/vhost.h. */
const VHOST_VSOCK_SET_GUEST_CID = 0x4008af60;
/** A range so large, and used by no other program, that a free CID is found immediately. */
const ASIDE = { from: 2 ** 31, to: 2 ** 32 - 2 } as const;
const ASIDE_TRIES = 8;

export interface CidDevice {
  /** Throws if it cannot be opened. */
  open(): number;
  /** Takes a CID in place of the previous one. False if it is in use. */
  take(descriptor: number, cid: number): boolean;
  close(descriptor: number): void;
}

/** The first of these CIDs that is unused on the host, and that is free again when this returns; null if absent. */
export function firstFreeCid(cids: Iterable<number>, device: CidDevice): number | null {
  let descriptor: number;
  try {
    descriptor = device.open();
  } catch {
    // The start of a guest reports the cause; until then nothing is known about CIDs.
    const [first = null] = cids;
    return first;
  }
  try {
    for (const cid of cids) {
      if (!device.take(descriptor, cid)) continue;
      // A close also releases the CID, but takes the kernel some milliseconds, and the guest's QEMU may claim the CID sooner.
      for (let tries = 0; !device.take(descriptor, randomInt(ASIDE.from, ASIDE.to)) && tries < ASIDE_TRIES; tries++);
      return cid;
    }
    return null;
  } finally {
    device.close(descriptor);
  }
}

let libc: ReturnType<typeof openLibc> | null = null;

function openLibc() {
  return dlopen("libc.so.6", { ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" } }).symbols;
}

/** The kernel's vhost-vsock. */
export function cidDevice(path: string): CidDevice {
  return {
    open: () => openSync(path, "r+"),
    take: (descriptor, cid) => {
      libc ??= openLibc();
      try {
        check(libc.ioctl(descriptor, VHOST_VSOCK_SET_GUEST_CID, ptr(new BigUint64Array([BigInt(cid)]))), `CID ${cid}`);
        return true;
      } catch (error) {
        if (errnoOf(error) !== "EADDRINUSE") throw error;
        return false;
      }
    },
    // On another thread: the kernel waits there until the device has no readers left.
    close: (descriptor) => close(descriptor, () => {}),
  };
}
