/**
 * Owns what a clone does that waits for its sandbox: at a word on the serial console it goes through being set up once,
 * so that its QEMU has translated what that runs.
 */
import { REHEARSED_LINE } from "../shared/agent-protocol/messages.ts";
import * as libc from "./libc.ts";
import { announce } from "./log.ts";

export class Rehearsal {
  readonly #warm: () => Promise<void>;
  /** Resolves when no rehearsal is under way. */
  over: Promise<void> = Promise.resolve();

  constructor(warm: () => Promise<void>) {
    this.#warm = warm;
  }

  /** Waits for the word, once. What it says is of no matter, and a signal is the cheapest way to hear of it. */
  listen(): void {
    const fd = libc.openForSignal("/dev/console");
    process.once("SIGIO", () => {
      libc.close(fd);
      this.over = this.#warm().then(() => announce(REHEARSED_LINE));
    });
  }
}
