/**
 * Reaps processes that no other code waits for: commands, whose exit is reported to their execution, and orphans, which process 1 inherits.
 *
 * Bun waits for its own children by pid, so those must be left to it. The kernel shows one zombie at a time: if that is one of Bun's, the
 * sweep stops and continues once Bun has reaped it.
 */
import * as libc from "./libc.ts";

export class Reaper {
  readonly #buns = new Set<number>();
  readonly #adopted = new Map<number, (ended: libc.Zombie) => void>();

  /** Sweeps whenever a child ends. */
  start(): void {
    process.on("SIGCHLD", () => this.#sweep());
  }

  /** Leaves the reaping of a child to Bun. Must be called in the same event loop turn as the spawn. */
  spare(child: { pid: number; exited: Promise<unknown> }): void {
    this.#buns.add(child.pid);
    const forget = () => {
      this.#buns.delete(child.pid);
      this.#sweep();
    };
    child.exited.then(forget, forget);
  }

  /** Resolves with the exit of a child that we have started ourselves. To be called in the same turn as its spawn. */
  adopt(pid: number): Promise<libc.Zombie> {
    return new Promise((resolve) => this.#adopted.set(pid, resolve));
  }

  #sweep(): void {
    for (let ended = this.#next(); ended !== null; ended = this.#next()) {
      this.#adopted.get(ended.pid)?.(ended);
      this.#adopted.delete(ended.pid);
    }
  }

  #next(): libc.Zombie | null {
    if (this.#buns.size === 0) return libc.reapZombie();
    const ended = libc.peekZombie();
    if (ended === null || this.#buns.has(ended.pid)) return null;
    return libc.reapZombie(ended.pid);
  }
}
