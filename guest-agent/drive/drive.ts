/**
 * The guest's end of the room's drive: its mount, and whether it responds.
 *
 *     mounted ──virtiofsd dies──▶ lost ──another device is plugged──▶ mounted
 *
 * A process that waits for a dead virtiofsd is blocked forever, and not even SIGKILL ends it: virtiofs completes a request only with its
 * reply. Such processes keep the old mount, which is detached from the mount namespace.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Welcome } from "../../shared/agent-protocol/messages.ts";
import * as libc from "../libc.ts";
import type { Reaper } from "../reap.ts";
import { runtimeProgram } from "../runtime.ts";

/** Hotplug ends when the guest's driver has probed the device, well after the host's plug command. */
const PLUG_DEADLINE_MS = 10_000;
const PLUG_RETRY_MS = 3;
const ANSWER_DEADLINE_MS = 3_000;

/** An overloaded host takes seconds to start a process. */
const DETACH_DEADLINE_MS = 20_000;
const DETACH_LOOK_MS = 5;
/** Source of the tmpfs mounted in place of a lost drive: empty and read-only. */
const PLACEHOLDER = "drive-lost";

export class Drive {
  readonly #reaper: Pick<Reaper, "spare">;
  #mountPoint: string | null = null;
  /** Tag of the mounted share; null if none is mounted, or if it does not respond. */
  #tag: string | null = null;
  #asking: Promise<void> | null = null;

  constructor(reaper: Pick<Reaper, "spare">) {
    this.#reaper = reaper;
  }

  /** Idempotent. Set-user-id files and device nodes that another guest created on the drive have no effect in this guest. */
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

  /** virtiofsd has died: detaches the mount, which must not be accessed any more. Idempotent. */
  async lose(): Promise<void> {
    this.#tag = null;
    // A pending check of the dead mount never completes.
    this.#asking = null;
    const mountPoint = this.#mountPoint;
    if (mountPoint === null) return;
    const lost = mountedAt(mountPoint);
    if (lost === PLACEHOLDER) return;
    if (lost !== null) await this.#detach(mountPoint);
    // Writes must fail until the drive is back, and not end up on the guest's own disk beneath the mount point.
    libc.mount(PLACEHOLDER, mountPoint, "tmpfs", libc.MountFlag.readonly | libc.MountFlag.nodev, "mode=755,size=4k");
  }

  /**
   * In a separate process that is never awaited: the last holder of a mount sends a final request to the host, and blocks forever if
   * virtiofsd is dead. `--no-canonicalize` keeps umount from accessing the path.
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

  /** Whether a resolved path is on the drive, by its name only: a stat would access the drive. */
  holds(path: string): boolean {
    return this.#mountPoint !== null && `${path}/`.startsWith(`${this.#mountPoint}/`);
  }

  /**
   * Whether virtiofsd responds. If it does not, any process that accesses the drive blocks forever, so process 1 must not do it: a thread
   * of Bun's pool does the check, at most one at a time.
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

/** Waits for the virtiofs device: each failed mount attempt would make the kernel print a line. */
async function plugged(tag: string): Promise<void> {
  const giveUpAt = performance.now() + PLUG_DEADLINE_MS;
  while (!drivesThere().includes(tag)) {
    if (performance.now() > giveUpAt) throw new Error(`no virtiofs device ${tag} after ${PLUG_DEADLINE_MS} ms`);
    await sleep(PLUG_RETRY_MS);
  }
}

/** Tags of the plugged virtiofs devices. Linux 6.9 and later list them there. */
export function drivesThere(): string[] {
  const folder = "/sys/fs/virtiofs";
  try {
    return readdirSync(folder).map((device) => readFileSync(`${folder}/${device}/tag`, "utf8").trim());
  } catch {
    return [];
  }
}

/** Source of the mount exactly at this path, the newest if there are several; null if there is no mount. */
function mountedAt(mountPoint: string): string | null {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const found = mounts.findLast((line) => line.split(" ")[1] === mountPoint);
  return found?.split(" ")[0] ?? null;
}
