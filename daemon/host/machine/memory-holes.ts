/**
 * Keeps a save from adding to a guest's memory on the host. To save it QEMU reads every page, and a page of shared memory is allocated once
 * it was read: even a page that the guest never used, or has given back and no longer reports.
 *
 *     open ─▶ the guest is paused ─▶ note the absent pages ─▶ QEMU saves ─▶ free these again ─▶ the guest resumes
 *
 * Absent pages read as zeros, and nothing writes while the guest is paused, so freed pages read as before.
 */
import { closeSync, constants, fstatSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { errnoOf } from "../../core/service-error.ts";
import { asFileUser } from "../files/libc.ts";
import type { Identity } from "../isolation/ids.ts";
import { isAlive, type ProcessRecord } from "../process.ts";

/** The file of a memory-backend-memfd. */
const MEMORY_FILE = "/memfd:memory-backend-memfd (deleted)";

export type Ordered = { does: "note"; files: readonly number[] } | { does: "restore" };

/** The reason of a failure; null after success. */
export type HolesReport = string | null;

export class MemoryHoles implements Disposable {
  readonly #files: readonly number[];
  /** A dedicated thread: a guest with scattered memory delays no other. */
  readonly #thread = new Worker(new URL("./holes-thread.ts", import.meta.url).href);
  /** Rejects if the thread exits on its own. */
  readonly #ended = Promise.withResolvers<never>();

  /** The memory of a QEMU that runs as `user`; null: as the daemon's user. Throws when QEMU has ended. */
  constructor(qemu: ProcessRecord, user: Identity | null) {
    this.#ended.promise.catch(() => {});
    this.#thread.unref();
    this.#thread.onerror = ({ message }) =>
      this.#ended.reject(new Error(`the thread of memory's holes has ended: ${message}`));
    try {
      this.#files = memoryOf(qemu, user);
    } catch (error) {
      this.#thread.terminate();
      throw error;
    }
  }

  /** The guest is paused, and stays paused until `restore` has resolved. */
  note(): Promise<void> {
    return this.#order({ does: "note", files: this.#files });
  }

  /** Frees the pages that were absent when they were noted. */
  restore(): Promise<void> {
    return this.#order({ does: "restore" });
  }

  [Symbol.dispose](): void {
    this.#thread.terminate();
    for (const file of this.#files) closeSync(file);
  }

  async #order(order: Ordered): Promise<void> {
    const report = Promise.withResolvers<HolesReport>();
    this.#thread.onmessage = ({ data }: MessageEvent<HolesReport>) => report.resolve(data);
    this.#thread.postMessage(order);
    const why = await Promise.race([report.promise, this.#ended.promise]);
    if (why !== null) throw new Error(why);
  }
}

/** Opened with its user's rights: a QEMU that a guest has compromised can expose only files that it may open itself. */
function memoryOf(qemu: ProcessRecord, user: Identity | null): number[] {
  const files: number[] = [];
  try {
    asFileUser(user?.uid ?? null, () => {
      const directory = `/proc/${qemu.pid}/fd`;
      for (const path of readdirSync(directory).map((name) => `${directory}/${name}`)) {
        // Nor can it make us wait for another kind of file.
        if (isMemory(path)) files.push(openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
      }
    });
    if (!isAlive(qemu)) throw new Error("its QEMU has ended");
    if (files.some((file) => !fstatSync(file).isFile())) throw new Error("the memory of its QEMU is not a file");
    return files;
  } catch (error) {
    for (const file of files) closeSync(file);
    throw error;
  }
}

function isMemory(path: string): boolean {
  try {
    return readlinkSync(path) === MEMORY_FILE;
  } catch (error) {
    // Other files of QEMU are opened and closed at any time.
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}
