/** Waits for devices by kernel uevents, which avoids polling. */
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { adopt } from "./socket-link.ts";

export class DeviceEvents {
  #waiting = Promise.withResolvers<void>();

  /** Subscribes to device events. */
  async listen(): Promise<void> {
    await adopt(libc.deviceEventSocket(), {
      data: () => this.#wake(),
      // The kernel closes a listener that fell behind; the missed events may include the awaited device.
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
