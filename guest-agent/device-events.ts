/**
 * Owns the wait for the device that leads to the host: the kernel tells of each one as it comes, so nobody has to ask all the time. It tells
 * of every step of each, and to dial in vain takes time from what is still to come; what matters is that this one has its driver.
 */
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { adopt } from "./socket-link.ts";

/** In the driver's name, which the kernel tells once the driver has taken the device, and in nothing that comes before. */
const AWAITED = "vsock";

export class DeviceEvents {
  #waiting = Promise.withResolvers<void>();

  /** Hears of it from now on. */
  async listen(): Promise<void> {
    await adopt(libc.deviceEventSocket(), {
      data: (_, told) => {
        if (told.includes(AWAITED)) this.#wake();
      },
      // The kernel ends a listener that fell behind; what it missed may be the one that is waited for.
      close: () => {
        this.#wake();
        this.listen().catch((error) => log("device events", error));
      },
    });
  }

  /** Resolves when the device has come, or after `timeoutMs`. */
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
