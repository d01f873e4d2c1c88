/** Owns a command's time: TERM to its whole group when it is up, KILL to what is left of the group 5 s later. */
import { signalGroup } from "./group.ts";

const KILL_AFTER_MS = 5_000;

export class Deadline {
  readonly #group: number;
  #timer: Timer;
  #passed = false;

  constructor(group: number, timeoutMs: number) {
    this.#group = group;
    this.#timer = setTimeout(() => this.#pass(), timeoutMs);
  }

  get passed(): boolean {
    return this.#passed;
  }

  /** Those whom the command left behind are still killed; but a group without members is a number for anyone. */
  commandEnded(): void {
    if (!this.#passed || !signalGroup(this.#group, 0)) clearTimeout(this.#timer);
  }

  #pass(): void {
    this.#passed = true;
    signalGroup(this.#group, "SIGTERM");
    this.#timer = setTimeout(() => signalGroup(this.#group, "SIGKILL"), KILL_AFTER_MS);
  }
}
