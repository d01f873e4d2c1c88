/**
 * Owns the ends of processes that nobody else waits for: orphans, whose parent process 1 becomes.
 *
 * Bun waits for what it spawned by pid, so those must be left to it. The kernel shows one zombie at a time: when that is
 * one of ours, the sweep stops and goes on once Bun has taken it.
 */
import * as libc from "./libc.ts";

export class Reaper {
  readonly #ours = new Set<number>();

  /** Sweeps whenever a child ends. */
  start(): void {
    process.on("SIGCHLD", () => this.#sweep());
  }

  /** Leaves a child to Bun. To be called in the same turn as its spawn. */
  spare(child: { pid: number; exited: Promise<unknown> }): void {
    this.#ours.add(child.pid);
    const forget = () => {
      this.#ours.delete(child.pid);
      this.#sweep();
    };
    child.exited.then(forget, forget);
  }

  #sweep(): void {
    for (let pid = libc.peekZombie(); pid !== null && !this.#ours.has(pid); pid = libc.peekZombie()) {
      libc.reapZombie(pid);
    }
  }
}
