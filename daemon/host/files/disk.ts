/**
 * Budget of the data directory's disk. Three kinds of writes compete for it:
 *
 *     adding data (a room, a sandbox, a file)     only while more than `floor_bytes` are free
 *     recording only (a command, a change)        also below that, until half of the reserve is released
 *     freeing space (every DELETE)                always, from the rest of the reserve
 *
 * Guests can write past all of this, except into the reserve.
 */
import { statfsSync } from "node:fs";
import { onceATurn } from "../../core/concurrency/next-turn.ts";
import type { Paths } from "../../core/config/paths.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import { Reserve } from "./reserve.ts";

/** Maximum share of a small disk for the floor, and for the reserve. */
const LARGEST_SHARE = 1 / 8;
/** A disk can also run out of inodes. */
const LEAST_NAMES = 64;
const MIB = 1024 ** 2;

export interface DiskState {
  size_bytes: number;
  free_bytes: number;
  free_names: number;
  floor_bytes: number;
  reserve_bytes: number;
  reserve_held_bytes: number;
}

export class Disk {
  readonly #directory: string;
  readonly #floor: number;
  readonly #reserve: Reserve;
  /** For frequent callers. */
  readonly #hasSpaceNow = onceATurn(() => this.#hasSpace);

  constructor(
    { data: directory, reserve }: Pick<Paths, "data" | "reserve">,
    sizes: { floor_mib: number; reserve_mib: number },
  ) {
    const { blocks, bsize } = statfsSync(directory);
    const most = blocks * bsize * LARGEST_SHARE;
    this.#directory = directory;
    this.#floor = Math.min(sizes.floor_mib * MIB, most);
    this.#reserve = new Reserve(reserve, Math.min(sizes.reserve_mib * MIB, most));
    if (this.#hasSpace) this.restore();
    // The database, which is opened next, may need a block to be opened at all.
    else this.#reserve.giveUp();
  }

  state(): DiskState {
    const { bavail, blocks, bsize, files, ffree } = statfsSync(this.#directory);
    return {
      size_bytes: blocks * bsize,
      free_bytes: bavail * bsize,
      // Some file systems have no separate limit on names, and report 0.
      free_names: files === 0 ? Number.MAX_SAFE_INTEGER : ffree,
      floor_bytes: this.#floor,
      reserve_bytes: this.#reserve.size_bytes,
      reserve_held_bytes: this.#reserve.held_bytes,
    };
  }

  /** Call before an operation that adds data. Throws disk_full. */
  requireSpace(): void {
    if (!this.#hasSpaceNow()) throw this.#full();
  }

  /** Before a write that only records. Throws disk_full. */
  requireRecord(): void {
    const half = this.#reserve.size_bytes / 2;
    if (this.#reserve.held_bytes < half && !this.#hasSpace) throw this.#full();
  }

  /** Releases a piece of the reserve for a write that must succeed; false if no piece remains that this write may use. */
  giveUp(vital: boolean): boolean {
    if (!vital && this.#reserve.held_bytes < this.#reserve.size_bytes / 2) return false;
    return this.#reserve.giveUp();
  }

  /** Whether there is space again for guests that stalled for lack of it. */
  get hasSpace(): boolean {
    return this.#hasSpace;
  }

  /** Bytes that may be added before the floor is reached. */
  get spare_bytes(): number {
    return spareBytes(this.#directory, this.#floor);
  }

  /** Refills the reserve, if the free space permits. */
  restore(): void {
    const { free_bytes, reserve_bytes, reserve_held_bytes } = this.state();
    if (reserve_held_bytes >= reserve_bytes) return;
    if (free_bytes - (reserve_bytes - reserve_held_bytes) >= this.#floor) this.#reserve.fill();
  }

  close(): void {
    this.#reserve.close();
  }

  get #hasSpace(): boolean {
    const { free_bytes, free_names } = this.state();
    return free_bytes >= this.#floor && free_names >= LEAST_NAMES;
  }

  #full(): ServiceError {
    const { free_bytes, free_names } = this.state();
    const names = free_bytes >= this.#floor;
    return new ServiceError("disk_full", {
      detail: names
        ? `The host's disk has ${free_names} inodes left; ${LEAST_NAMES} must stay free.`
        : `The host's disk has ${Math.floor(free_bytes / MIB)} MiB free; ${Math.ceil(this.#floor / MIB)} MiB must stay free.`,
      details: { free_bytes, floor_bytes: this.#floor },
      hint: "Delete rooms, sandboxes or files: that works on a full disk.",
    });
  }
}

/** Bytes that may be added to this directory's disk before only `floorBytes` are free. */
export function spareBytes(directory: string, floorBytes: number): number {
  const { bavail, blocks, bsize } = statfsSync(directory);
  return Math.max(0, bavail * bsize - Math.min(floorBytes, blocks * bsize * LARGEST_SHARE));
}

/** Does it; on a full disk again, for as long as `releaseEmail` makes space. */
export async function onFullDisk<T>(giveUp: () => boolean, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (errnoOf(error) !== "ENOSPC" || !giveUp()) throw error;
    }
  }
}
