/** Owns the wait for a device: the kernel tells of each one as it comes, so nobody has to ask all the time. */
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { adopt } from "./socket-link.ts";

export class DeviceEvents {
  #waiting = Promise.withResolvers<boolean>();

  /** Hears of devices from now on. */
  async listen(): Promise<void> {
    await adopt(libc.deviceEventSocket(), {
      data: () => this.#wake(true),
      // The kernel ends a listener that fell behind; what it missed may be the one that is waited for.
      close: () => {
        this.#wake(true);
        this.listen().catch((error) => log("device events", error));
      },
    });
  }

  /** Whether an event came within `timeoutMs`. */
  async next(timeoutMs: number): Promise<boolean> {
    const timer = setTimeout(() => this.#wake(false), timeoutMs);
    const came = await this.#waiting.promise;
    clearTimeout(timer);
    return came;
  }

  #wake(came: boolean): void {
    this.#waiting.resolve(came);
    this.#waiting = Promise.withResolvers<boolean>();
  }
}
