/** Owns the guest's end of the room's drive: its mount, and whether it still answers. */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Welcome } from "../../shared/agent-protocol/messages.ts";
import { isMounted } from "../boot.ts";
import * as libc from "../libc.ts";

/** Hotplug ends when the guest's driver has probed the device, well after the host's command for it. */
const PLUG_DEADLINE_MS = 10_000;
const PLUG_RETRY_MS = 3;
const ANSWER_DEADLINE_MS = 3_000;

export class Drive {
  #mountPoint: string | null = null;
  #asking: Promise<void> | null = null;

  /** Once; again is nothing. Set-user-id files and devices that another guest made there have no effect in this one. */
  async mount({ tag, mount_point }: NonNullable<Welcome["drive"]>): Promise<void> {
    if (!isMounted(mount_point)) {
      mkdirSync(mount_point, { recursive: true });
      await plugged(tag);
      libc.mount(tag, mount_point, "virtiofs", libc.MountFlag.nosuid | libc.MountFlag.nodev, null);
    }
    this.#mountPoint = mount_point;
  }

  /** Whether a path is on the drive, by its name alone: to look at the file would be to ask the drive. */
  holds(path: string): boolean {
    return this.#mountPoint !== null && `${resolve(path)}/`.startsWith(`${this.#mountPoint}/`);
  }

  /**
   * Whether the host's end is alive. When it is not, it holds for ever whoever touches the drive, and process 1 must not
   * be that one: a thread of Bun's asks, and only one at a time.
   */
  async answers(): Promise<boolean> {
    if (this.#mountPoint === null) return true;
    const done = () => {
      this.#asking = null;
    };
    this.#asking ??= statfs(this.#mountPoint).then(done, done);
    const late = new AbortController();
    const answered = this.#asking.then(() => true);
    const silent = sleep(ANSWER_DEADLINE_MS, false, { signal: late.signal }).catch(() => false);
    return Promise.race([answered, silent]).finally(() => late.abort());
  }
}

/** Waits for the virtiofs device: to try the mount itself would make the kernel print a line for each try. */
async function plugged(tag: string): Promise<void> {
  const giveUpAt = performance.now() + PLUG_DEADLINE_MS;
  while (!virtiofsTags().includes(tag)) {
    if (performance.now() > giveUpAt) throw new Error(`no virtiofs device ${tag} after ${PLUG_DEADLINE_MS} ms`);
    await sleep(PLUG_RETRY_MS);
  }
}

/** Linux 6.9 and later list their devices there. */
function virtiofsTags(): string[] {
  const folder = "/sys/fs/virtiofs";
  try {
    return readdirSync(folder).map((device) => readFileSync(`${folder}/${device}/tag`, "utf8").trim());
  } catch {
    return [];
  }
}
