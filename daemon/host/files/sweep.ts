/** Removes leftovers of a crash on a drive: temporary files, and trees whose erasing was interrupted. */

import { monotonicMs } from "../../core/clock.ts";
import type { PieceTurns } from "../../core/loop/index.ts";
import { Beneath } from "./beneath.ts";
import type { Entry } from "./entries.ts";
import { eraseHidden } from "./erase.ts";
import { isGone } from "./gone.ts";
import type { RawPath } from "./raw-path.ts";
import { isLeftOver } from "./temporary.ts";
import { walk } from "./walk.ts";

/** Guests may use such names too, and continue to fill such a directory: then it stays until the next sweep. */
const SWEEP_MS = 60_000;

/** Removes the temporary entries of earlier runs, and returns their number. Those in use by this run of the daemon stay. */
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
