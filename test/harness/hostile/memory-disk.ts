/** Data of a daemon on a file system in memory, so that its flushes do not depend on other programs of the host. */
import { mkdtempSync, rmdirSync, rmSync, symlinkSync } from "node:fs";
import type { TestDaemon } from "../daemon.ts";

const PLACE = "/dev/shm";

export class MemoryDisk implements Disposable {
  readonly #place = mkdtempSync(`${PLACE}/roomd-t-`);

  /** Before the daemon's first start. */
  readonly hold = ({ dataDir }: TestDaemon): void => {
    rmdirSync(dataDir);
    symlinkSync(this.#place, dataDir);
  };

  [Symbol.dispose](): void {
    rmSync(this.#place, { recursive: true });
  }
}
