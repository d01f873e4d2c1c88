/** A thread that copies one drive, into a store or out of it (drive-store.ts). The thread lives as long as this object. */

import type { Bounds, Copied, Restoring } from "./drive-store.ts";
import { SystemError } from "./libc.ts";

export type Ordered =
  | { does: "copy"; drive: string; store: string; bounds: Bounds }
  | { does: "complete" }
  | { does: "sync" }
  | ({ does: "restore" } & Restoring);

export type CopyReport = { copied: Copied } | { error: string; code: string | null };

export class DriveCopier implements AsyncDisposable {
  readonly #thread = new Worker(new URL("./drive-thread.ts", import.meta.url).href);
  readonly #flag = new SharedArrayBuffer(4);
  #underWay: Promise<unknown> = Promise.resolve();

  constructor() {
    this.#thread.unref();
  }

  /** The first pass, while guests write. Throws EDQUOT if the drive exceeds `bounds`, ENOSPC. */
  copy(drive: string, store: string, bounds: Bounds): Promise<Copied> {
    return this.#order({ does: "copy", drive, store, bounds });
  }

  /** Copies the changes since then, while nothing writes. */
  complete(): Promise<Copied> {
    return this.#order({ does: "complete" });
  }

  /** Flushes the store to disk, which takes long if others write to the disk. */
  async sync(): Promise<void> {
    await this.#order({ does: "sync" });
  }

  /** Restores a drive from a store into an empty directory; resolves when it is on disk. */
  restore(restoring: Restoring): Promise<Copied> {
    return this.#order({ does: "restore", ...restoring });
  }

  /** Makes the operation in progress fail soon. */
  giveUp(): void {
    Atomics.store(new Int32Array(this.#flag), 0, 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.giveUp();
    await this.#underWay.catch(() => {});
    this.#thread.terminate();
  }

  #order(order: Ordered): Promise<Copied> {
    const work = new Promise<Copied>((resolve, reject) => {
      this.#thread.onmessage = ({ data }: MessageEvent<CopyReport>) => {
        if ("copied" in data) resolve(data.copied);
        else reject(data.code === null ? new Error(data.error) : new SystemError(data.code, data.error));
      };
      this.#thread.onerror = ({ message }) => reject(new Error(`the thread that copies a drive has ended: ${message}`));
      this.#thread.postMessage({ ...order, flag: this.#flag });
    });
    this.#underWay = work;
    return work;
  }
}
