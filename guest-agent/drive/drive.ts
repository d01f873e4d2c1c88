/**
 * Owns the guest's end of the room's drive: its mount, and whether it still answers.
 *
 *   mounted ──the host's end dies──▶ lost ──another is plugged──▶ mounted
 *
 * Whoever waits for an end that has died waits for ever, KILL or not: virtiofs ends no request but by its answer. They keep
 * the old mount, which is taken out of everyone else's sight.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Welcome } from "../../shared/agent-protocol/messages.ts";
import * as libc from "../libc.ts";
import type { Reaper } from "../reap.ts";
import { runtimeProgram } from "../runtime.ts";

/** Hotplug ends when the guest's driver has probed the device, well after the host's command for it. */
const PLUG_DEADLINE_MS = 10_000;
const PLUG_RETRY_MS = 3;
const ANSWER_DEADLINE_MS = 3_000;

/** A host that is overloaded takes seconds to begin a process. */
const DETACH_DEADLINE_MS = 20_000;
const DETACH_LOOK_MS = 5;
/** What is mounted in the place of a lost drive: empty, and read only. */
const PLACEHOLDER = "drive-lost";

export class Drive {
  readonly #reaper: Pick<Reaper, "spare">;
  #mountPoint: string | null = null;
  /** What is mounted; null when nothing is, or nothing that answers. */
  #tag: string | null = null;
  #asking: Promise<void> | null = null;

  constructor(reaper: Pick<Reaper, "spare">) {
    this.#reaper = reaper;
  }

  /** Once; again is nothing. Set-user-id files and devices that another guest made there have no effect in this one. */
  async mount({ tag, mount_point }: NonNullable<Welcome["drive"]>): Promise<void> {
    if (mountedAt(mount_point) !== tag) {
      await this.lose();
      mkdirSync(mount_point, { recursive: true });
      await plugged(tag);
      if (mountedAt(mount_point) === PLACEHOLDER) libc.unmountLazily(mount_point);
      libc.mount(tag, mount_point, "virtiofs", libc.MountFlag.nosuid | libc.MountFlag.nodev, null);
    }
    this.#mountPoint = mount_point;
    this.#tag = tag;
  }

  /** The host's end has died: lets go of the mount, which must be touched by nobody any more. Again is nothing. */
  async lose(): Promise<void> {
    this.#tag = null;
    // Who asked the dead one gets no answer any more.
    this.#asking = null;
    const mountPoint = this.#mountPoint;
    if (mountPoint === null) return;
    const lost = mountedAt(mountPoint);
    if (lost === PLACEHOLDER) return;
    if (lost !== null) await this.#detach(mountPoint);
    // What is written there meanwhile must fail, and not end up on the guest's own disk beneath the drive.
    libc.mount(PLACEHOLDER, mountPoint, "tmpfs", libc.MountFlag.readonly | libc.MountFlag.nodev, "mode=755,size=4k");
  }

  /**
   * By a process of its own, which nobody waits for: the last to hold a mount says goodbye to the other end, and waits for
   * ever when that is dead. `--no-canonicalize`, lest it looks at the place.
   */
  async #detach(mountPoint: string): Promise<void> {
    const argv = runtimeProgram("umount", "--lazy", "--no-canonicalize", "--internal-only", mountPoint);
    const child = Bun.spawn(argv, { cwd: "/", stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    this.#reaper.spare(child);
    child.unref();
    const giveUpAt = performance.now() + DETACH_DEADLINE_MS;
    while (mountedAt(mountPoint) !== null) {
      if (performance.now() > giveUpAt) throw new Error("the lost drive could not be unmounted");
      await sleep(DETACH_LOOK_MS);
    }
  }

  /** Whether a resolved path is on the drive, by its name alone: to look at the file would be to ask the drive. */
  holds(path: string): boolean {
    return this.#mountPoint !== null && `${path}/`.startsWith(`${this.#mountPoint}/`);
  }

  /**
   * Whether the host's end is alive. When it is not, it holds for ever whoever touches the drive, and process 1 must not
   * be that one: a thread of Bun's asks, and only one at a time.
   */
  async answers(): Promise<boolean> {
    if (this.#mountPoint === null) return true;
    if (this.#tag === null) return false;
    if (this.#asking === null) {
      const asking = statfs(this.#mountPoint).then(
        () => {},
        () => {},
      );
      this.#asking = asking;
      void asking.then(() => {
        if (this.#asking === asking) this.#asking = null;
      });
    }
    const late = new AbortController();
    const answered = this.#asking.then(() => true);
    const silent = sleep(ANSWER_DEADLINE_MS, false, { signal: late.signal }).catch(() => false);
    return Promise.race([answered, silent]).finally(() => late.abort());
  }
}

/** Waits for the virtiofs device: to try the mount itself would make the kernel print a line for each try. */
async function plugged(tag: string): Promise<void> {
  const giveUpAt = performance.now() + PLUG_DEADLINE_MS;
  while (!drivesThere().includes(tag)) {
    if (performance.now() > giveUpAt) throw new Error(`no virtiofs device ${tag} after ${PLUG_DEADLINE_MS} ms`);
    await sleep(PLUG_RETRY_MS);
  }
}

/** The tags of what is plugged. Linux 6.9 and later list their devices there. */
export function drivesThere(): string[] {
  const folder = "/sys/fs/virtiofs";
  try {
    return readdirSync(folder).map((device) => readFileSync(`${folder}/${device}/tag`, "utf8").trim());
  } catch {
    return [];
  }
}

/** The source of what is mounted exactly there, the newest if it is several; null when nothing is. */
function mountedAt(mountPoint: string): string | null {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const found = mounts.findLast((line) => line.split(" ")[1] === mountPoint);
  return found?.split(" ")[0] ?? null;
}
