/**
 * Rehearsal of a clone that waits for its sandbox: on a line on the serial console it runs the set-up once, so that its QEMU has translated
 * that code. Then its host may plug devices for a moment, as a sandbox gets them.
 *
 * It forgets executions and clears the machine ID, so it must never run in a sandbox: it is cancelled before the agent first reaches a
 * host.
 */
import { DEVICES_WANTED_LINE, REHEARSED_LINE } from "../shared/agent-protocol/messages.ts";
import * as libc from "./libc.ts";
import { announce } from "./log.ts";

export class PoolWarmUp {
  readonly #warm: () => Promise<void>;
  readonly #useDrive: () => Promise<void>;
  /** Open while a rehearsal may start. */
  #console: number | null = null;
  /** Resolves when the agent may dial; the drive's rehearsal may still run. */
  over: Promise<void> = Promise.resolve();

  constructor(warm: () => Promise<void>, useDrive: () => Promise<void>) {
    this.#warm = warm;
    this.#useDrive = useDrive;
  }

  /**
   * Waits for one line on the console; its text is ignored. SIGIO is the cheapest notification, but no proof of input: the kernel also
   * sends it when the console accepts output again after a partial write, and root may send it.
   */
  listen(path = "/dev/console"): void {
    const fd = libc.openForSignal(path);
    this.#console = fd;
    process.on("SIGIO", () => {
      if (this.#console !== fd || !libc.isReadable(fd)) return;
      this.end();
      this.over = this.#warm();
      void this.over.then(async () => {
        announce(DEVICES_WANTED_LINE);
        await this.#useDrive();
        announce(REHEARSED_LINE);
      });
    });
  }

  /** Prevents any further rehearsal. The SIGIO handler stays: without one, Bun's default might end process 1. */
  end(): void {
    if (this.#console !== null) libc.close(this.#console);
    this.#console = null;
  }
}
