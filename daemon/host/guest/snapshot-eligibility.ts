/** Whether a guest can be saved, and the most disk space that takes, according to its record. */
import { residentMemoryMib } from "../usage.ts";
import type { GuestRecord } from "./record.ts";

const MIB = 1024 ** 2;
/** Device state, and the table of present pages. */
const BESIDE_MEMORY_MIB = 16;

/** Why a guest without a recorded machine cannot be saved. */
export const OLDER = "it was started by an older roomd";

/** Why the guest cannot be saved, now or later; null when it can. */
export function whyIneligible({ machine, drive }: GuestRecord, hasDrive: boolean): string | null {
  if (!machine) return OLDER;
  if (hasDrive && (drive.turn > 0 || !drive.mounted)) {
    return "its virtiofsd has ended once, and QEMU cannot save the leftover device";
  }
  return null;
}

/**
 * Zero pages are not written, and neither is QEMU's other memory: so it is less as a rule. For a guest that does not exist yet, all memory
 * that it may have.
 */
export function savedBytes({ qemu }: Pick<GuestRecord, "qemu">, memoryMib: number): number {
  const used = qemu ? Math.min(residentMemoryMib(qemu.pid), memoryMib) : memoryMib;
  return (used + BESIDE_MEMORY_MIB) * MIB;
}
