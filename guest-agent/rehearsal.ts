/**
 * Owns what a clone does that waits for its sandbox: at a word on the serial console it goes through being set up once,
 * so that its QEMU has translated what that runs. Then its host may plug devices for a moment, as a sandbox gets them.
 */
import { DEVICES_WANTED_LINE, REHEARSED_LINE } from "../shared/agent-protocol/messages.ts";
import * as libc from "./libc.ts";
import { announce } from "./log.ts";

export class Rehearsal {
  readonly #warm: () => Promise<void>;
  readonly #useDrive: () => Promise<void>;
  /** Resolves when the agent may dial: the drive may still be tried. */
  over: Promise<void> = Promise.resolve();

  constructor(warm: () => Promise<void>, useDrive: () => Promise<void>) {
    this.#warm = warm;
    this.#useDrive = useDrive;
  }

  /** Waits for the word, once. What it says is of no matter, and a signal is the cheapest way to hear of it. */
  listen(): void {
    const fd = libc.openForSignal("/dev/console");
    process.once("SIGIO", () => {
      libc.close(fd);
      this.over = this.#warm();
      void this.over.then(async () => {
        announce(DEVICES_WANTED_LINE);
        await this.#useDrive();
        announce(REHEARSED_LINE);
      });
    });
  }
}
