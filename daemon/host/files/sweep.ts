/** Owns what a crash leaves on a drive: temporary files, and trees whose erasing was cut short. */
import { Beneath } from "./beneath.ts";
import type { Entry } from "./entries.ts";
import { eraseHidden } from "./erase.ts";
import { isGone } from "./gone.ts";
import { Pace, type Turn } from "./pace.ts";
import type { RawPath } from "./raw-path.ts";
import { isLeftOver } from "./temporary.ts";
import { walk } from "./walk.ts";

/** Guests may give such names too, and go on filling what has one: then it stays until the next sweep. */
const SWEEP_MS = 60_000;

/** Removes what an earlier run left under a temporary name, and returns how many there were. What this run of the daemon has under way stays. */
export async function sweepTemporaryFiles(directory: string, turn: Turn): Promise<number> {
  using root = Beneath.open(directory);
  const deadline = performance.now() + SWEEP_MS;
  const inTime: Turn = async () => {
    if (performance.now() > deadline) throw new Error(`the sweep was not done after ${SWEEP_MS / 1000} s`);
    await turn();
  };
  let swept = 0;
  const remove = async (parent: Beneath, name: RawPath) => {
    try {
      await eraseHidden(parent, name, { withinMs: deadline - performance.now() });
      swept++;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  };
  const visit = (parent: Beneath, { name }: Entry) => (isLeftOver(name) ? remove(parent, name) : undefined);
  await walk(root, visit, { pace: new Pace(inTime) });
  return swept;
}
