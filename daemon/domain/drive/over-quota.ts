/**
 * Owns what guests, who write past the calls, may still do to their drive where the kernel keeps no quota of it:
 *
 *   open ──at its limit, or all of the organization at its plan's──▶ stopped ──by far beyond it, or grows all the same──▶ held
 *     ▲                                                                 │                                                  │
 *     └───────────────────────────────under the limit again─────────────┴──────────────────────────────────────────────────┘
 *
 * What is by far beyond the limit when that is first seen is held at once. How a share is brought into a mode is
 * host/virtiofs/restrain.ts.
 */
import type { ShareMode } from "../../host/virtiofs/restrain.ts";
import type { Amount, Measured } from "./measure.ts";

type Outcome = "works" | "EFBIG" | "waits";

/**
 * What root in a guest meets, call by call. What `works` in `stopped` is how a drive grows all the same: by names, which
 * count, and by space that is set aside beyond a file's end, which takes no write. In `open` a file ends at the drive's limit,
 * so that one call takes no more; only space beyond its end may, once: the next look holds the drive.
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

/** Beyond the limit, or grown while stopped, by more than was under way and some empty files: that is no accident. */
export const MOST_BEYOND = { bytes: 64 * 1024 ** 2, entries: 10_000 } as const;

export interface Allowance {
  /** The drive's own limits. */
  bytes: number;
  entries: number;
  /** What the organization's plan still has, negative when it is exceeded. */
  org_bytes_left: number;
}

/** The mode that follows on `mode` by a measure; `stoppedAt` is the one by which the drive was stopped. */
export function modeAfter(
  mode: ShareMode,
  measured: Measured,
  allowance: Allowance,
  stoppedAt: Amount | null,
): ShareMode {
  const { is_complete, kept_by_kernel } = measured;
  const limit = { used_bytes: allowance.bytes, entry_count: allowance.entries };
  // The kernel knows of one drive, not of all of an organization's.
  const isFull = !kept_by_kernel && exceeds(measured, limit, { bytes: 0, entries: 0 });
  if (is_complete && !isFull && allowance.org_bytes_left > 0) return "open";
  if (mode === "held" || (!kept_by_kernel && exceeds(measured, limit, MOST_BEYOND))) return "held";
  if (mode === "open" || !stoppedAt) return "stopped";
  // Who moves directories about so that they cannot be measured is measured while nothing moves.
  return !is_complete || exceeds(measured, stoppedAt, MOST_BEYOND) ? "held" : "stopped";
}

function exceeds(
  { used_bytes, entry_count }: Amount,
  before: Pick<Amount, "used_bytes" | "entry_count">,
  by: { bytes: number; entries: number },
): boolean {
  return used_bytes - before.used_bytes >= by.bytes || entry_count - before.entry_count >= by.entries;
}
