/**
 * The reserve: a file of real blocks that is unused until the disk is full. Then a piece of it is released for each write that must succeed
 * anyway, so that operations that free space can be recorded; and it grows again once there is space.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { errnoOf } from "../../core/service-error.ts";
import { reserveSpace } from "./libc.ts";

/** Enough for any one commit, and a small loss if a guest takes the space. */
const PIECE_BYTES = 256 * 1024;
/** Number of pieces of a small reserve. */
const LEAST_PIECES = 32;
const BLOCK_BYTES = 4096;

export class Reserve {
  readonly size_bytes: number;
  readonly #file: number;
  readonly #piece: number;

  /** Opens the reserve, or creates an empty one; `fill` allocates its blocks. */
  constructor(path: string, sizeBytes: number) {
    this.size_bytes = roundDown(sizeBytes);
    this.#piece = Math.min(PIECE_BYTES, Math.max(BLOCK_BYTES, roundDown(sizeBytes / LEAST_PIECES)));
    this.#file = openSync(path, "a+", 0o600);
  }

  /** Its current disk usage. */
  get held_bytes(): number {
    return fstatSync(this.#file).blocks * 512;
  }

  /** Frees a piece for a necessary write; false when none is left. */
  giveUp(): boolean {
    const held = this.held_bytes;
    if (held === 0) return false;
    // The blocks are at the beginning, without a hole.
    ftruncateSync(this.#file, held);
    ftruncateSync(this.#file, Math.max(0, roundDown(held - this.#piece)));
    return true;
  }

  /** Allocates the missing blocks, or as many of them as the disk has. */
  fill(): void {
    const missing = this.size_bytes - this.held_bytes;
    if (missing <= 0) {
      if (missing < 0) ftruncateSync(this.#file, this.size_bytes);
      return;
    }
    try {
      this.#take(this.size_bytes - missing, missing);
      ftruncateSync(this.#file, this.size_bytes);
    } catch (error) {
      if (errnoOf(error) !== "ENOSPC" && errnoOf(error) !== "EDQUOT") throw error;
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #take(offset: number, length: number): void {
    try {
      reserveSpace(this.#file, offset, length);
    } catch (error) {
      if (errnoOf(error) !== "EOPNOTSUPP") throw error;
      const zeros = Buffer.alloc(PIECE_BYTES);
      for (let left = length; left > 0; left -= PIECE_BYTES) {
        writeSync(this.#file, zeros.subarray(0, Math.min(left, PIECE_BYTES)));
      }
    }
  }
}

function roundDown(bytes: number): number {
  return Math.floor(bytes / BLOCK_BYTES) * BLOCK_BYTES;
}
