/**
 * Freezes the guest's own disk (fsfreeze) while the host copies it: all data is flushed, and no process writes. Process 1 writes to that
 * disk too, and a blocked writer can do nothing else. So a child process freezes the disk, and thaws it when we write to its stdin or when
 * its time is up.
 */
import { FREEZE_MS } from "../shared/agent-protocol/messages.ts";
import { BUSYBOX } from "../shared/agent-protocol/runtime.ts";
import { log } from "./log.ts";
import type { Reaper } from "./reap.ts";

/** Printed by the child once the disk is frozen. */
const FROZEN = "frozen\n";
/** Exits with 0 if stdin was written in time. */
const SCRIPT = `"$0" fsfreeze --freeze / && echo frozen && read -r -t ${FREEZE_MS / 1000} word; late=$?; "$0" fsfreeze --unfreeze /; exit $late`;

interface Frozen {
  /** Thaws the disk; resolves with whether it had stayed frozen until then. */
  thaw(): Promise<boolean>;
}

export class DiskFreeze {
  readonly #reaper: Pick<Reaper, "spare">;
  #now: Frozen | null = null;

  constructor(reaper: Pick<Reaper, "spare">) {
    this.#reaper = reaper;
  }

  /** Resolves once the disk is frozen; an earlier freeze is ended first. Rejects if the kernel cannot freeze it. */
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
    throw new Error(`failed to freeze the disk: exit ${await child.exited}`);
  }

  /** Thaws the disk. Returns whether it was frozen until now; false if it was not frozen. */
  async end(): Promise<boolean> {
    const frozen = this.#now;
    this.#now = null;
    const inTime = (await frozen?.thaw()) ?? false;
    if (frozen && !inTime) log("the disk was thawed before the host requested it");
    return inTime;
  }
}
