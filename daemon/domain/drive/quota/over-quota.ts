/**
 * Access modes of guests, which write without calls, on a drive over its quota, if the kernel keeps no quota of it:
 *
 *     open ──at its limit, or the organization at its plan's──▶ stopped ──far over it, or still growing──▶ held
 *       ▲                                                          │                                        │
 *       └────────────────────────────under the limit again─────────┴────────────────────────────────────────┘
 *
 * A drive that is far over the limit at the first measure is held immediately. How a mode is applied to a share is in
 * host/virtiofs/throttle.ts.
 */
import type { ShareMode } from "../../../host/virtiofs/throttle.ts";
import type { Amount, Measured } from "./measure.ts";

type Outcome = "works" | "EFBIG" | "waits";

/**
 * Result of each call of root in a guest. Calls that still work in `stopped` can make a drive grow: names, which count, and space allocated
 * past a file's end, which takes no write. In `open` a file ends at the drive's limit, so that one call takes no more; only space past its
 * end may exceed it, once: the next check holds the drive.
 */
export const GUEST_MAY = {
  read: { open: "works", stopped: "works", held: "waits" },
  delete: { open: "works", stopped: "works", held: "waits" },
  write: { open: "works", stopped: "EFBIG", held: "waits" },
  write_beyond_limit: { open: "EFBIG", stopped: "EFBIG", held: "waits" },
  allocate: { open: "works", stopped: "EFBIG", held: "waits" },
  allocate_beyond_limit: { open: "EFBIG", stopped: "EFBIG", held: "waits" },
  allocate_keeping_size: { open: "works", stopped: "works", held: "waits" },
  make_holes: { open: "works", stopped: "EFBIG", held: "waits" },
  make_empty_file: { open: "works", stopped: "works", held: "waits" },
  make_directory: { open: "works", stopped: "works", held: "waits" },
  make_symlink: { open: "works", stopped: "works", held: "waits" },
  make_deep_tree: { open: "works", stopped: "works", held: "waits" },
} as const satisfies Record<string, Record<ShareMode, Outcome>>;

/** Over the limit, or growth while stopped, by more than writes in progress and some empty files: that is no accident. */
export const MAX_BEYOND = { bytes: 64 * 1024 ** 2, entries: 10_000 } as const;

export interface Allowance {
  /** The drive's own limits. */
  bytes: number;
  entries: number;
  /** The remaining bytes of the organization's plan, negative when it is exceeded. */
  org_bytes_left: number;
}

/** The mode after a measure; `mode` is the current one, `stoppedAt` the measure after the drive was stopped. */
export function modeAfter(
  mode: ShareMode,
  measured: Measured,
  allowance: Allowance,
  stoppedAt: Amount | null,
): ShareMode {
  const { is_complete, kept_by_kernel } = measured;
  const limit = { used_bytes: allowance.bytes, entry_count: allowance.entries };
  // The kernel's quota covers one drive, not all drives of an organization.
  const isFull = !kept_by_kernel && exceeds(measured, limit, { bytes: 0, entries: 0 });
  if (is_complete && !isFull && allowance.org_bytes_left > 0) return "open";
  if (mode === "held" || (!kept_by_kernel && exceeds(measured, limit, MAX_BEYOND))) return "held";
  if (mode === "open" || !stoppedAt) return "stopped";
  // A guest that moves directories so that they cannot be measured is held, and then measured while nothing moves.
  return !is_complete || exceeds(measured, stoppedAt, MAX_BEYOND) ? "held" : "stopped";
}

function exceeds(
  { used_bytes, entry_count }: Amount,
  before: Pick<Amount, "used_bytes" | "entry_count">,
  by: { bytes: number; entries: number },
): boolean {
  return used_bytes - before.used_bytes >= by.bytes || entry_count - before.entry_count >= by.entries;
}
