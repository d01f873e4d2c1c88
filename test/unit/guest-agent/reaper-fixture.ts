/**
 * Waits for children that parts of the agent start within a test: each by its pid, since other children of this process must not be reaped.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { reapZombie, type Zombie } from "../../../guest-agent/libc.ts";
import type { Reaper } from "../../../guest-agent/reap.ts";

const LOOK_EVERY_MS = 1;

export const adopting: Pick<Reaper, "adopt"> = {
  adopt: async (pid): Promise<Zombie> => {
    for (;;) {
      const ended = reapZombie(pid);
      if (ended) return ended;
      await sleep(LOOK_EVERY_MS);
    }
  },
};
