/**
 * Owns a command's time.
 *
 *   running ──time is up──▶ TERM ──5 s──▶ KILL ──1 s──▶ lost: not even KILL ends who waits for a dead drive
 *
 * Signals go to the whole process group, and to what is left of it when the command itself has ended meanwhile.
 */
import { signalGroup } from "./group.ts";

const KILL_AFTER_MS = 5_000;
const LOST_AFTER_MS = 1_000;

export class Deadline {
  readonly #group: number;
  #timer: Timer;
  readonly #lost = Promise.withResolvers<void>();
  #passed = false;

  constructor(group: number, timeoutMs: number) {
    this.#group = group;
    this.#timer = setTimeout(() => this.#pass(), timeoutMs);
  }

  get passed(): boolean {
    return this.#passed;
  }

  /** Resolves when the command could not be ended. */
  get lost(): Promise<void> {
    return this.#lost.promise;
  }

  /** Those whom the command left behind are still killed; but a group without members is a number for anyone. */
  commandEnded(): void {
    if (!this.#passed || !signalGroup(this.#group, 0)) clearTimeout(this.#timer);
  }

  #pass(): void {
    this.#passed = true;
    signalGroup(this.#group, "SIGTERM");
    this.#timer = setTimeout(() => this.#kill(), KILL_AFTER_MS);
  }

  #kill(): void {
    signalGroup(this.#group, "SIGKILL");
    this.#timer = setTimeout(this.#lost.resolve, LOST_AFTER_MS);
  }
}
