/**
 * Owns the standstill of the guest's own disk, while the host takes what is on it: nothing of it is in memory alone then, and nobody
 * writes. It ends by itself, should the host not come back: process 1 must never wait for it.
 */
import { FREEZE_MS } from "../shared/agent-protocol/messages.ts";
import * as libc from "./libc.ts";
import { log } from "./log.ts";

export class DiskFreeze {
  #over: Timer | null = null;

  /** Again is the same, for as long anew. Throws SystemError where the kernel cannot. */
  begin(): void {
    if (this.#over === null) libc.freezeRoot();
    else clearTimeout(this.#over);
    this.#over = setTimeout(() => {
      log("the disk was not let go by the host");
      this.end();
    }, FREEZE_MS);
  }

  /** Again is nothing. */
  end(): void {
    if (this.#over === null) return;
    clearTimeout(this.#over);
    this.#over = null;
    libc.thawRoot();
  }
}
