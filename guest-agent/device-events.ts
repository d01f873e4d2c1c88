/** Owns the wait for a device: the kernel tells of each one as it comes, so nobody has to ask all the time. */
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { adopt } from "./socket-link.ts";

export class DeviceEvents {
  #waiting = Promise.withResolvers<void>();

  /** Hears of devices from now on. */
  async listen(): Promise<void> {
    await adopt(libc.deviceEventSocket(), {
      data: () => this.#wake(),
      // The kernel ends a listener that fell behind; what it missed may be the one that is waited for.
      close: () => {
        this.#wake();
        this.listen().catch((error) => log("device events", error));
      },
    });
  }

  /** Resolves with the next event, or after `timeoutMs`. */
  async next(timeoutMs: number): Promise<void> {
    const timer = setTimeout(() => this.#wake(), timeoutMs);
    await this.#waiting.promise;
    clearTimeout(timer);
  }

  #wake(): void {
    this.#waiting.resolve();
    this.#waiting = Promise.withResolvers<void>();
  }
}
