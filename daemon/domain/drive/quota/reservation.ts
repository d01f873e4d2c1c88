/** The share of the quota that one write has reserved while it is in progress. */
import { ServiceError } from "../../../core/service-error.ts";
import type { Change, Claimed } from "./estimate.ts";

interface Keeper {
  /** The write creates a file with this inode. */
  makes(inode: bigint): void;
  /** Throws drive_full, quota_exceeded. */
  require(bytes: number, replaced: number): void;
  settle(change: Change): void;
  end(): void;
}

export class Reservation implements Claimed, Disposable {
  readonly entries: number;
  readonly #keeper: Keeper;
  readonly #cut = new AbortController();
  bytes = 0;
  /** Bytes that are already in the temporary file. */
  written_bytes = 0;

  constructor(entries: number, keeper: Keeper) {
    this.entries = entries;
    this.#keeper = keeper;
  }

  /** Aborted with room_destroying when the drive is released: nothing more is to be written. */
  get over(): AbortSignal {
    return this.#cut.signal;
  }

  /** The drive is released. */
  cut(): void {
    this.#cut.abort(new ServiceError("room_destroying"));
  }

  /** Makes the claim count the temporary file with this inode, whatever names guests give it. */
  makes(inode: bigint): void {
    this.#keeper.makes(inode);
  }

  /** Reserves more; `replaced` is the space that the write will free in the end. Throws drive_full, quota_exceeded, room_destroying. */
  grow(bytes: number, replaced: number): void {
    this.over.throwIfAborted();
    this.#keeper.require(bytes, replaced);
    this.bytes += bytes;
  }

  /** The write is done; `change` is its effect. */
  settle(change: Change): void {
    this.#keeper.end();
    this.#keeper.settle(change);
  }

  [Symbol.dispose](): void {
    this.#keeper.end();
  }
}
