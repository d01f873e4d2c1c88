/**
 * Owns the standstill of the guest's own disk, while the host takes what is on it: nothing of it is in memory alone then, and nobody
 * writes. Process 1 writes to that disk too, and whoever does waits, and does nothing else: so a process beside us freezes it, and lets
 * it go at our word or when its time is up.
 */
import { FREEZE_MS } from "../shared/agent-protocol/messages.ts";
import { BUSYBOX } from "../shared/agent-protocol/runtime.ts";
import { log } from "./log.ts";
import type { Reaper } from "./reap.ts";

/** What it says once nobody writes. */
const FROZEN = "frozen\n";
/** Ends with 0 where the word came in time. */
const SCRIPT = `"$0" fsfreeze --freeze / && echo frozen && read -r -t ${FREEZE_MS / 1000} word; late=$?; "$0" fsfreeze --unfreeze /; exit $late`;

interface Frozen {
  /** Ends it; resolves with whether the disk had stood still until then. */
  thaw(): Promise<boolean>;
}

export class DiskFreeze {
  readonly #reaper: Pick<Reaper, "spare">;
  #now: Frozen | null = null;

  constructor(reaper: Pick<Reaper, "spare">) {
    this.#reaper = reaper;
  }

  /** Resolves once nobody writes. Rejects where the kernel cannot; what was begun before is over. */
  async begin(): Promise<void> {
    await this.end();
    const child = Bun.spawn([BUSYBOX, "sh", "-c", SCRIPT, BUSYBOX], {
      ...{ cwd: "/", env: {}, stdin: "pipe", stdout: "pipe", stderr: "inherit" },
    });
    this.#reaper.spare(child);
    this.#now = {
      thaw: async () => {
        child.stdin.write("word\n");
        await child.stdin.end();
        return (await child.exited) === 0;
      },
    };
    const { value } = await child.stdout.getReader().read();
    if (new TextDecoder().decode(value) === FROZEN) return;
    this.#now = null;
    throw new Error(`the disk could not be brought to a standstill: exit ${await child.exited}`);
  }

  /** Whether it has stood still until now; false where it had not been frozen. */
  async end(): Promise<boolean> {
    const frozen = this.#now;
    this.#now = null;
    const inTime = (await frozen?.thaw()) ?? false;
    if (frozen && !inTime) log("the disk went on before the host had said so");
    return inTime;
  }
}
