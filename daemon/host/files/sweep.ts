/** Owns what a crash leaves on a drive: temporary files, and trees whose erasing was cut short. */
import { Beneath } from "./beneath.ts";
import { eraseHidden } from "./erase.ts";
import { isGone } from "./gone.ts";
import { isLeftOver } from "./temporary.ts";
import { walk } from "./walk.ts";

/** Removes what an earlier run left under a temporary name, and returns how many there were. What this run of the daemon has under way stays. */
export async function sweepTemporaryFiles(directory: string): Promise<number> {
  using root = Beneath.open(directory);
  let swept = 0;
  await walk(root, async (parent, { name }) => {
    if (!isLeftOver(name)) return;
    try {
      await eraseHidden(parent, name);
      swept++;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  });
  return swept;
}
