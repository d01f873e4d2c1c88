/**
 * Atomic replacement of a file: it is written under an unguessable name, synced, then renamed, so that readers see the old file or the new
 * one and a crash leaves at most a temporary file, which the sweep removes.
 *
 * Root in a guest can see that name and do to it whatever it may do to any file of its drive, and no more.
 */
import { randomBytes } from "node:crypto";
import { faultPoint } from "../../core/fault-points.ts";
import type { Beneath } from "./beneath.ts";
import type { Facts } from "./facts.ts";
import { isGone } from "./gone.ts";
import { type GuestOwner, type OpenFile, SYNC_EVERY_BYTES } from "./open-file.ts";
import type { RawPath } from "./raw-path.ts";

const PATTERN = /^\.roomd-[0-9a-f]{32}$/;

/** Whether the host reserves the name for itself on every drive. */
export function isTemporaryName(name: string): boolean {
  return PATTERN.test(name);
}

/** Each run of the daemon has its own mark, which distinguishes leftovers of an earlier run from files in use. */
const RUN = randomBytes(4).toString("hex");

export function temporaryName(): RawPath {
  return `.roomd-${RUN}${randomBytes(12).toString("hex")}` as RawPath;
}

/** Whether the name is a temporary name of an earlier run. */
export function isLeftOver(name: string): boolean {
  return isTemporaryName(name) && !name.startsWith(`.roomd-${RUN}`);
}

export class Temporary implements AsyncDisposable {
  readonly #directory: Beneath;
  readonly #file: OpenFile;
  readonly name: RawPath;
  #placed = false;
  #unsynced = 0;
  #syncing: Promise<void> = Promise.resolve();

  /** A new empty file in `directory`, which must stay open as long as this object. */
  constructor(directory: Beneath, name: RawPath) {
    this.#directory = directory;
    this.#file = directory.newFile(name);
    this.name = name;
  }

  /** Identifies the file under any name. */
  get inode(): bigint {
    return this.#file.inode;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#file.write(bytes);
    this.#unsynced += bytes.byteLength;
    if (this.#unsynced < SYNC_EVERY_BYTES) return;
    this.#unsynced = 0;
    await this.#syncing;
    this.#syncing = this.#file.sync();
    // The next write or `finish` reports the error; until then the rejection must not count as unhandled.
    this.#syncing.catch(() => {});
  }

  /** Makes the complete file durable. */
  async finish(mode: number, owner?: GuestOwner): Promise<void> {
    this.#file.own(mode, owner);
    await faultPoint("place.written");
    await this.#syncing;
    await this.#file.sync();
    await faultPoint("place.synced");
  }

  /** Puts the finished file in its place, permanently. Throws EEXIST, EISDIR. */
  async place(name: RawPath, taken: "replace" | "refuse"): Promise<Facts> {
    await this.#directory.rename(this.name, this.#directory, name, taken);
    this.#placed = true;
    await faultPoint("place.renamed");
    await this.#directory.sync();
    return this.#file.freshFacts();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file[Symbol.asyncDispose]();
    if (this.#placed) return;
    await this.#directory.unlink(this.name).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  }
}
