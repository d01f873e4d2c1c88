/** Owns what a crash leaves on a drive: temporary files, and trees whose erasing was cut short. */
import { Beneath } from "./beneath.ts";
import { eraseHidden } from "./erase.ts";
import { isGone } from "./gone.ts";
import { isTemporaryName } from "./temporary.ts";
import { walk } from "./walk.ts";

/** Removes what has a temporary name, and returns how many there were. Only while nobody writes through the host. */
export async function sweepTemporaryFiles(directory: string): Promise<number> {
  using root = Beneath.open(directory);
  let swept = 0;
  await walk(root, async (parent, { name }) => {
    if (!isTemporaryName(name)) return;
    try {
      await eraseHidden(parent, name);
      swept++;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  });
  return swept;
}
