/**
 * Owns how a command is brought to its end: by its time, or by who wants it ended.
 *
 *   running ──time is up, end()──▶ TERM ──5 s──▶ KILL ──1 s──▶ lost: not even KILL ends who waits for a dead drive
 *
 * It is about all that the command has begun, and goes on for what is left of that when the command itself has ended meanwhile.
 */
import type { Group } from "./group.ts";

const KILL_AFTER_MS = 5_000;
const LOST_AFTER_MS = 1_000;
/** How soon it is noticed that nothing is left to be killed. */
const LOOK_EVERY_MS = 100;

export class Deadline {
  readonly #group: Group;
  #timer: Timer | undefined;
  readonly #lost = Promise.withResolvers<null>();
  #over: PromiseWithResolvers<void> | null = null;
  #passed = false;
  #commandEnded = false;

  /** Null: the command has no time limit. */
  constructor(group: Group, timeoutMs: number | null) {
    this.#group = group;
    if (timeoutMs === null) return;
    this.#timer = setTimeout(() => {
      this.#passed = true;
      void this.end();
    }, timeoutMs);
  }

  /** Whether the command's time was up before it ended. */
  get passed(): boolean {
    return this.#passed;
  }

  /** Resolves when the command could not be ended. */
  get lost(): Promise<null> {
    return this.#lost.promise;
  }

  /** Ends it, or what it has left behind. Resolves when nothing is left, or could not be ended. */
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

  /** What it left behind goes on, unless it was to be ended. */
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
