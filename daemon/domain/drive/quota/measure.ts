/**
 * Measurement of a drive: its disk usage without holes, and its number of files and entries. Files that guests have deleted and still hold
 * open are no longer in the tree, but still on the disk: they are found through the shares.
 */
import type { PieceTurns } from "../../../core/loop/index.ts";
import { Beneath } from "../../../host/files/beneath.ts";
import type { Entry } from "../../../host/files/entries.ts";
import { ifThere } from "../../../host/files/gone.ts";
import { walk } from "../../../host/files/walk.ts";
import type { ProcessRecord } from "../../../host/process.ts";
import { deletedFiles } from "../../../host/virtiofs/throttle.ts";

/** Usage of a drive, or of a part of it. */
export interface Amount {
  used_bytes: number;
  file_count: number;
  /** Names of any kind. */
  entry_count: number;
}

export interface Measured extends Amount {
  /** False if there is more: too many entries to count, or a guest moved directories during the count. */
  is_complete: boolean;
  /** The kernel counts the usage and enforces the quota on guests; every inode but the drive's own then counts as a file and an entry. */
  kept_by_kernel: boolean;
}

export interface MeasureOptions {
  /**
   * Bytes of the file with this inode that the write in progress has already counted; null for other files. Bytes that a guest adds to the
   * file, and further names that it gives it, count.
   */
  setAside?: (inode: bigint) => number | null;
  /** Processes through which guests access the drive. */
  shares?: readonly ProcessRecord[];
  /** Maximum number of counted entries. */
  most?: number;
  /** Absent: in one turn. */
  pieces?: PieceTurns;
}

// Maximum number of files with several names that are counted only once.
const MAX_LINKED = 100_000;

/** Walks the whole drive; an absent one uses nothing. */
export async function measureTree(directory: string, options: MeasureOptions = {}): Promise<Measured> {
  const { setAside = () => null, shares = [], most, pieces } = options;
  const linked = new Set<bigint>();
  const measured = { used_bytes: 0, file_count: 0, entry_count: 0, is_complete: true, kept_by_kernel: false };
  // Many measures may start together.
  await pieces?.turn();
  using root = ifThere(() => Beneath.open(directory));
  if (!root) return measured;
  const visit = (parent: Beneath, { name }: Entry) => {
    const use = parent.use(name);
    if (!use) return;
    const aside = use.type === "file" ? setAside(use.inode) : null;
    if (use.type !== "directory" && (use.links > 1 || aside !== null)) {
      const isSecond = linked.has(use.inode);
      // The write that creates the file has counted its first name.
      if (isSecond || aside === null) measured.entry_count++;
      if (isSecond) return;
      if (linked.size < MAX_LINKED || aside !== null) linked.add(use.inode);
    } else measured.entry_count++;
    measured.used_bytes += Math.max(0, use.allocated_bytes - (aside ?? 0));
    if (use.type === "file" && aside === null) measured.file_count++;
  };
  const end = await walk(root, visit, { ...(pieces && { pieces }), ...(most === undefined ? {} : { most }) });
  measured.is_complete = end === "complete";
  for await (const { allocated_bytes } of deletedFiles(directory, shares, pieces))
    measured.used_bytes += allocated_bytes;
  return measured;
}
