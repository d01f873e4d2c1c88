/** Owns the measuring of a drive: what it takes on the disk, holes not counted, and how many files there are. */
import { Beneath } from "../host/files/beneath.ts";
import { ifThere } from "../host/files/gone.ts";
import { walk } from "../host/files/walk.ts";

export interface Measured {
  used_bytes: number;
  file_count: number;
}

// Files with several names are counted once, as far as they can be remembered.
const MOST_LINKED = 100_000;

/** Walks the whole drive; one that is gone takes nothing. Names that `skip` knows are left out. */
export async function measureTree(directory: string, skip: (name: string) => boolean): Promise<Measured> {
  const linked = new Set<string>();
  const measured = { used_bytes: 0, file_count: 0 };
  using root = ifThere(() => Beneath.open(directory));
  if (!root) return measured;
  await walk(root, (parent, { name }) => {
    const facts = parent.facts(name);
    if (!facts || skip(name)) return;
    if (facts.type !== "directory" && facts.links > 1) {
      if (linked.has(facts.identity)) return;
      if (linked.size < MOST_LINKED) linked.add(facts.identity);
    }
    measured.used_bytes += facts.allocated_bytes;
    if (facts.type === "file") measured.file_count++;
  });
  return measured;
}
