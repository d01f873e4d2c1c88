/**
 * Owns the measuring of a drive: what it takes on the disk, holes not counted, and how many files and entries there are.
 * What guests have deleted and still hold open is no longer in the tree, but still on the disk: it is found at the shares.
 */

import { Beneath } from "../../host/files/beneath.ts";
import type { Entry } from "../../host/files/entries.ts";
import { ifThere } from "../../host/files/gone.ts";
import { walk } from "../../host/files/walk.ts";
import type { ProcessRecord } from "../../host/process.ts";
import { deletedFiles } from "../../host/virtiofs/restrain.ts";

export interface Measured {
  used_bytes: number;
  file_count: number;
  /** Names of any kind. */
  entry_count: number;
  /** There are directories that are not counted, because they lie too deep. */
  too_deep: boolean;
  /** The kernel counts it and keeps guests to the quota; then every inode but the drive's own counts as a file and an entry. */
  kept_by_kernel: boolean;
}

// Files with several names are counted once, as far as they can be remembered.
const MOST_LINKED = 100_000;

/** Walks the whole drive; one that is gone takes nothing. Names that `skip` knows are left out. */
export async function measureTree(
  directory: string,
  skip: (name: string) => boolean,
  shares: readonly ProcessRecord[] = [],
): Promise<Measured> {
  const linked = new Set<string>();
  const measured = { used_bytes: 0, file_count: 0, entry_count: 0, too_deep: false, kept_by_kernel: false };
  using root = ifThere(() => Beneath.open(directory));
  if (!root) return measured;
  const visit = (parent: Beneath, { name }: Entry) => {
    const facts = parent.facts(name);
    if (!facts || skip(name)) return;
    measured.entry_count++;
    if (facts.type !== "directory" && facts.links > 1) {
      if (linked.has(facts.identity)) return;
      if (linked.size < MOST_LINKED) linked.add(facts.identity);
    }
    measured.used_bytes += facts.allocated_bytes;
    if (facts.type === "file") measured.file_count++;
  };
  await walk(root, visit, () => {
    measured.too_deep = true;
  });
  for await (const { allocated_bytes } of deletedFiles(directory, shares)) measured.used_bytes += allocated_bytes;
  return measured;
}
