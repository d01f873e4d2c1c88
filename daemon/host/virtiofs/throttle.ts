/**
 * Restricts a guest's operations on the drive, from outside of its share, so that root in the guest can undo none of it:
 *
 *     open      everything, in files up to a size; above that a write fails with EFBIG, by the process's limit on file sizes
 *     stopped   reads, deletes, makes empty files: that limit is 0
 *     held      nothing: programs that use the drive in the guest wait until the mode is another of these
 *
 * A held share does not answer QEMU either, which sends it a request whenever the guest is paused or resumed, and then does nothing else.
 * During that it is only stopped.
 */

import { closeSync, constants, openSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { monotonicMs, sleep } from "../../core/clock.ts";
import { DeadlineError } from "../../core/concurrency/published.ts";
import type { PieceTurns } from "../../core/loop/index.ts";
import { errnoOf } from "../../core/service-error.ts";
import { parseEntries } from "../files/entries.ts";
import { ifThere } from "../files/gone.ts";
import { getdents, limitFileSize } from "../files/libc.ts";
import { isAlive, type ProcessRecord } from "../process.ts";

export type ShareMode = "open" | "stopped" | "held";

const SIGXFSZ_BIT = 1n << 24n;

/** The held shares, some of which must answer QEMU for the moment. */
export class Throttle {
  readonly #held = new Map<string, ProcessRecord>();
  readonly #answering = new Map<string, number>();
  /** Quiesced shares, and the mode that each is put into afterwards. */
  readonly #still = new Map<string, { over: Promise<void>; after: () => void }>();

  /** Puts a share into a mode, permanently; `largestFile` is in bytes. Does nothing if it has ended. Throws if the daemon may not. */
  set(share: ProcessRecord, mode: ShareMode, largestFile: number): void {
    for (const [key, held] of this.#held) if (!isAlive(held)) this.#held.delete(key);
    if (mode === "held") this.#held.set(keyOf(share), share);
    else this.#held.delete(keyOf(share));
    const still = this.#still.get(keyOf(share));
    if (still) still.after = () => this.#apply(share, mode, largestFile);
    else this.#apply(share, mode, largestFile);
  }

  /**
   * Has guests wait with their drive during the work, so that none of them changes it. Waits for a share that is answering QEMU; a share
   * that has to answer during the work waits. Throws DeadlineError if a share does not come to rest, or a new one appears.
   */
  async still<T>(sharesNow: () => readonly ProcessRecord[], work: () => Promise<T>): Promise<T> {
    const shares = sharesNow();
    const over = Promise.withResolvers<void>();
    const isFree = () => shares.every((share) => !this.#answering.has(keyOf(share)) && !this.#still.has(keyOf(share)));
    while (!isFree()) await until(isFree, "a sandbox that is being saved");
    for (const share of shares) {
      const after = () => (this.#held.has(keyOf(share)) ? undefined : wake(share));
      this.#still.set(keyOf(share), { over: over.promise, after });
    }
    try {
      for (const share of shares) if (isAlive(share)) for (const pid of treeOf(share.pid)) signal(pid, "SIGSTOP");
      await until(() => shares.every(isAtRest), "stopping the writes of guests on the drive");
      const done = await work();
      const known = new Set(shares.map(keyOf));
      if (sharesNow().every((share) => known.has(keyOf(share)))) return done;
      throw new DeadlineError("a sandbox was started in the meantime");
    } finally {
      try {
        this.#goOn(shares);
      } finally {
        over.resolve();
      }
    }
  }

  /** Returns each share to its mode, whatever happens to the others. Throws the first error. */
  #goOn(shares: readonly ProcessRecord[]): void {
    const errors: unknown[] = [];
    for (const share of shares) {
      const still = this.#still.get(keyOf(share));
      this.#still.delete(keyOf(share));
      try {
        still?.after();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  /** Lets the share answer for the duration of the work, whatever its mode is or becomes. */
  async answering<T>(share: ProcessRecord, work: () => Promise<T>): Promise<T> {
    const key = keyOf(share);
    for (let still = this.#still.get(key); still; still = this.#still.get(key)) await still.over;
    this.#answering.set(key, (this.#answering.get(key) ?? 0) + 1);
    try {
      if (this.#held.has(key)) this.#apply(share, "held");
      return await work();
    } finally {
      const left = (this.#answering.get(key) ?? 1) - 1;
      if (left > 0) this.#answering.set(key, left);
      else this.#answering.delete(key);
      if (this.#held.has(key)) this.#apply(share, "held");
    }
  }

  #apply(share: ProcessRecord, mode: ShareMode, largestFile = 0): void {
    restrain(share, mode === "held" && this.#answering.has(keyOf(share)) ? "stopped" : mode, largestFile);
  }
}

function keyOf({ pid, start_ticks }: ProcessRecord): string {
  return `${pid}:${start_ticks}`;
}

/** Lets a share that an earlier daemon held answer again; its write limit is unchanged. */
export function wake(share: ProcessRecord): void {
  if (isAlive(share)) for (const pid of treeOf(share.pid)) signal(pid, "SIGCONT");
}

/** The mode in which an earlier daemon left a share; a held share that has been woken is only stopped. */
export function modeFound(share: ProcessRecord): ShareMode {
  const processes = isAlive(share) ? treeOf(share.pid) : [];
  if (processes.some((pid) => /^State:\s+T/m.test(textOf(`/proc/${pid}/status`)))) return "held";
  const mayNotWrite = (pid: number) => /^Max file size\s+0\s/m.test(textOf(`/proc/${pid}/limits`));
  return processes.some(mayNotWrite) ? "stopped" : "open";
}

/** Whether every thread of a share is stopped, or the share has ended. */
function isAtRest(share: ProcessRecord): boolean {
  if (!isAlive(share)) return true;
  return treeOf(share.pid).every((pid) =>
    namesIn(`/proc/${pid}/task`).every(
      (task) => !/^State:\s+[^TtZX]/m.test(textOf(`/proc/${pid}/task/${task}/status`)),
    ),
  );
}

const PATIENCE_MS = 10_000;
const LOOK_MS = 2;

async function until(isSo: () => boolean, label: string): Promise<void> {
  const since = monotonicMs();
  while (!isSo()) {
    if (monotonicMs() - since > PATIENCE_MS) throw new DeadlineError(`${label} took over ${PATIENCE_MS} ms`);
    await sleep(LOOK_MS);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended since.
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

function restrain(share: ProcessRecord, mode: ShareMode, largestFile: number): void {
  if (!isAlive(share)) return;
  // virtiofsd serves from a child in a separate namespace.
  for (const pid of treeOf(share.pid)) {
    try {
      // The signal would end a share of an earlier version, which is held instead of stopped.
      const mayLimit = ignoresFileSizeSignal(pid);
      if (mayLimit) limitFileSize(pid, mode === "open" ? largestFile : 0);
      process.kill(pid, mode === "open" || (mode === "stopped" && mayLimit) ? "SIGCONT" : "SIGSTOP");
    } catch (error) {
      // It has ended since.
      if (errnoOf(error) !== "ESRCH") throw error;
    }
  }
}

/** Files that guests have deleted and still hold open: on the drive's disk, but in no directory. */
export async function* deletedFiles(
  drive: string,
  shares: readonly ProcessRecord[],
  pieces?: PieceTurns,
): AsyncGenerator<{ allocated_bytes: number }> {
  const alive = shares.filter(isAlive);
  // A share also has the guest's memory open, an unnamed file on another device.
  const device = alive.length === 0 ? null : ifThere(() => statSync(drive).dev);
  // A drive that is being erased may be gone by now.
  if (device === null) return;
  const seen = new Set<string>();
  for (const pid of alive.flatMap((share) => treeOf(share.pid))) {
    for await (const descriptors of descriptorsOf(pid, pieces)) {
      for (const descriptor of descriptors) {
        const turn = pieces?.next();
        if (turn) await turn;
        const file = deletedFile(`/proc/${pid}/fd/${descriptor}`, device);
        if (!file || seen.has(file.identity)) continue;
        seen.add(file.identity);
        yield file;
      }
    }
  }
}

/** Buffer for about a hundred names: the kernel takes up to 10 us for each. */
const DESCRIPTORS_BYTES = 4096;
const NO_FACTS = { facts: () => null };

/** The numbers of a process's open files, some at a time: a guest may have half a million open. */
async function* descriptorsOf(pid: number, pieces?: PieceTurns): AsyncGenerator<string[]> {
  let reader: number | null = null;
  try {
    reader = openSync(`/proc/${pid}/fd`, constants.O_RDONLY | constants.O_DIRECTORY);
    const buffer = Buffer.allocUnsafeSlow(DESCRIPTORS_BYTES);
    for (let filled = getdents(reader, buffer); filled > 0; filled = getdents(reader, buffer)) {
      yield parseEntries(NO_FACTS, buffer, filled).map(({ name }) => name);
      const turn = pieces?.next();
      if (turn) await turn;
    }
  } catch (error) {
    // It has ended.
    if (!["ENOENT", "ESRCH"].includes(errnoOf(error) ?? "")) throw error;
  } finally {
    if (reader !== null) closeSync(reader);
  }
}

function deletedFile(path: string, device: number): { identity: string; allocated_bytes: number } | null {
  try {
    // Reading the name first avoids access to devices and sockets.
    if (!readlinkSync(path).endsWith(" (deleted)")) return null;
    const { dev, ino, nlink, blocks } = statSync(path);
    return nlink > 0 || dev !== device ? null : { identity: `${dev}:${ino}`, allocated_bytes: blocks * 512 };
  } catch {
    return null;
  }
}

/** The process and all of its descendants. */
function treeOf(pid: number): number[] {
  const children = textOf(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(treeOf)];
}

function ignoresFileSizeSignal(pid: number): boolean {
  const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(textOf(`/proc/${pid}/status`))?.[1];
  return mask !== undefined && (BigInt(`0x${mask}`) & SIGXFSZ_BIT) !== 0n;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
