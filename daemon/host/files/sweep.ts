/** Owns what a crash leaves on a drive: temporary files, and trees whose erasing was cut short. */

import { monotonicMs } from "../../core/clock.ts";
import type { PieceTurns } from "../../core/loop/index.ts";
import { Beneath } from "./beneath.ts";
import type { Entry } from "./entries.ts";
import { eraseHidden } from "./erase.ts";
import { isGone } from "./gone.ts";
import type { RawPath } from "./raw-path.ts";
import { isLeftOver } from "./temporary.ts";
import { walk } from "./walk.ts";

/** Guests may give such names too, and go on filling what has one: then it stays until the next sweep. */
const SWEEP_MS = 60_000;

/** Removes what an earlier run left under a temporary name, and returns how many there were. What this run of the daemon has under way stays. */
export async function sweepTemporaryFiles(directory: string, pieces: PieceTurns): Promise<number> {
  using root = Beneath.open(directory);
  const deadline = monotonicMs() + SWEEP_MS;
  let swept = 0;
  const remove = async (parent: Beneath, name: RawPath) => {
    try {
      await eraseHidden(parent, name, { withinMs: deadline - monotonicMs() });
      swept++;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  };
  const visit = (parent: Beneath, { name }: Entry) => {
    if (monotonicMs() > deadline) throw new Error(`the sweep was not done after ${SWEEP_MS / 1000} s`);
    return isLeftOver(name) ? remove(parent, name) : undefined;
  };
  await walk(root, visit, { pieces });
  return swept;
}
