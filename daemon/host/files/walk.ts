/** Owns the walk over a whole tree: bounded memory and descriptors, links never followed. */
import type { Beneath } from "./beneath.ts";
import { type Entry, readEntries } from "./entries.ts";
import { Pace } from "./pace.ts";

// Each level holds two descriptors and some hundred names. What is deeper is not visited.
export const WALK_DEPTH = 256;

/** Calls `visit` for every entry, a directory before what is in it, and `tooDeep` for a directory that is not entered. */
export async function walk(
  root: Beneath,
  visit: (directory: Beneath, entry: Entry) => void | Promise<void>,
  tooDeep: () => void = () => {},
): Promise<void> {
  const pace = new Pace();
  const descend = async (directory: Beneath, depth: number): Promise<void> => {
    for await (const entries of readEntries(directory)) {
      for (const entry of entries) {
        const visited = visit(directory, entry);
        if (visited) await visited;
        if (pace.due) await pace.rest();
        if (entry.type !== "directory") continue;
        if (depth === WALK_DEPTH) {
          tooDeep();
          continue;
        }
        using below = directory.plainDirectory(entry.name);
        if (below) await descend(below, depth + 1);
      }
    }
  };
  await descend(root, 1);
}
