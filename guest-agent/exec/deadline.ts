/**
 * Ends a command, at its time limit or on request.
 *
 *     running ──time is up, end()──▶ TERM ──5 s──▶ KILL ──1 s──▶ lost: not even KILL ends a process blocked on a dead drive
 *
 * It applies to every process that the command started, and continues for the remaining ones if the command itself has exited meanwhile.
 */
import type { ProcessGroup } from "./process-group.ts";

const KILL_AFTER_MS = 5_000;
const LOST_AFTER_MS = 1_000;
/** Poll interval for noticing that no process remains. */
const LOOK_EVERY_MS = 100;

export class Deadline {
  readonly #group: ProcessGroup;
  #timer: Timer | undefined;
  readonly #lost = Promise.withResolvers<null>();
  #over: PromiseWithResolvers<void> | null = null;
  #passed = false;
  #commandEnded = false;

  /** Null: the command has no time limit. */
  constructor(group: ProcessGroup, timeoutMs: number | null) {
    this.#group = group;
    if (timeoutMs === null) return;
    this.#timer = setTimeout(() => {
      this.#passed = true;
      void this.end();
    }, timeoutMs);
  }

  /** Whether the time limit was reached before the command ended. */
  get passed(): boolean {
    return this.#passed;
  }

  /** Resolves if the command could not be ended. */
  get lost(): Promise<null> {
    return this.#lost.promise;
  }

  /** Ends the command, or its leftover processes. Resolves when none remains, or when they could not be ended. */
  end(): Promise<void> {
    if (this.#over) return this.#over.promise;
    const over = Promise.withResolvers<void>();
    this.#over = over;
    clearTimeout(this.#timer);
    this.#group.terminate();
    this.#wait(performance.now() + KILL_AFTER_MS, () => {
      this.#group.kill();
      this.#wait(performance.now() + LOST_AFTER_MS, () => this.#finish());
    });
    return over.promise;
  }

  /** Leftover processes keep running, unless `end` was called. */
  commandEnded(): void {
    this.#commandEnded = true;
    this.#group.leaderEnded();
    if (!this.#over) this.#finish();
  }

  #wait(dueAt: number, onDue: () => void): void {
    const leftMs = dueAt - performance.now();
    if (this.#commandEnded && this.#group.isGone) this.#finish();
    else if (leftMs <= 0) onDue();
    else this.#timer = setTimeout(() => this.#wait(dueAt, onDue), Math.min(leftMs, LOOK_EVERY_MS));
  }

  #finish(): void {
    clearTimeout(this.#timer);
    this.#group.release();
    this.#lost.resolve(null);
    this.#over?.resolve();
    this.#over = null;
  }
}
