/**
 * Log of the writes to a block device, as the kernel's dm-log-writes keeps it, and the state that remains after a power loss
 * (https://docs.kernel.org/admin-guide/device-mapper/log-writes.html; the format is in drivers/md/dm-log-writes.c, all numbers
 * little-endian):
 *
 *     first block    magic, version, number of entries: 64 bits each; bytes of a block: 32 bits
 *     each entry     a block with the first block, number of blocks, flags and length of a mark, 64 bits each, and the mark;
 *                    then the data, unless it is a discard
 *
 *     writes before a flush    kept: the log has those that were complete when the flush started
 *     writes since             a part of them, in any order, each whole or torn; those with FUA are kept
 *
 * Writes are torn at 4 KiB, as on disks with such sectors: XFS recovers no block of metadata that is torn within.
 */
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import type { Chance } from "../random.ts";
import { keptShare, reached } from "./recorded-disk.ts";

const MAGIC = 0x6a736677736872n;
const HEAD_BYTES = 512;
const ENTRY_BYTES = 32;
const SECTOR_BYTES = 4096;
const FLUSH = 1n;
const FUA = 2n;
const DISCARD = 4n;
const MARK = 8n;

interface Entry {
  /** Offset on the device, and bytes. */
  at: number;
  length: number;
  flags: bigint;
  mark: string;
  /** Offset of the data in the log. */
  data: number;
}

export class WriteLog {
  readonly #log: number;
  readonly entries: Entry[] = [];

  constructor(path: string) {
    this.#log = openSync(path, "r");
    const head = this.#read(0, HEAD_BYTES);
    if (head.readBigUInt64LE(0) !== MAGIC) throw new Error(`${path} is not a log of writes`);
    const count = Number(head.readBigUInt64LE(16));
    const block = head.readUInt32LE(24);
    for (let offset = block; this.entries.length < count; ) {
      const entry = this.#read(offset, block);
      const [first = 0, blocks = 0, , markBytes = 0] = [0, 8, 16, 24].map((at) => Number(entry.readBigUInt64LE(at)));
      const flags = entry.readBigUInt64LE(16);
      const mark = (flags & MARK) === 0n ? "" : entry.toString("latin1", ENTRY_BYTES, ENTRY_BYTES + markBytes);
      offset += block;
      const length = blocks * block;
      this.entries.push({ at: first * block, length, flags, mark, data: offset });
      if ((flags & DISCARD) === 0n) offset += length;
    }
  }

  /** Numbers of the entries that are flushes. */
  get flushes(): number[] {
    return this.entries.flatMap(({ flags }, index) => ((flags & FLUSH) === 0n ? [] : [index]));
  }

  /** Makes the entries from one number to before another on the device: all of them. */
  apply(device: number, from: number, to: number): void {
    for (const entry of this.entries.slice(from, to)) this.#put(device, entry, [[0, entry.length]]);
  }

  /**
   * Applies to a device that has all entries before the last flush the part of the later entries that remains if power is lost after this
   * entry.
   */
  crash(device: number, after: number, chance: Chance): void {
    const share = keptShare(chance);
    for (const entry of this.entries.slice(this.lastFlush(after), after + 1)) {
      if ((entry.flags & FUA) !== 0n) this.#put(device, entry, [[0, entry.length]]);
      else if (chance.next() < share) this.#put(device, entry, reached(entry.at, entry.length, chance, SECTOR_BYTES));
    }
  }

  /** Number of the last flush among the first entries; 0 if none exists. */
  lastFlush(after: number): number {
    return Math.max(
      0,
      this.entries.slice(0, after + 1).findLastIndex(({ flags }) => (flags & FLUSH) !== 0n),
    );
  }

  #put(device: number, entry: Entry, parts: [number, number][]): void {
    if (entry.length === 0) return;
    const isDiscard = (entry.flags & DISCARD) !== 0n;
    const bytes = isDiscard ? Buffer.alloc(entry.length) : this.#read(entry.data, entry.length);
    for (const [from, to] of parts) writeSync(device, bytes, from, to - from, entry.at + from);
  }

  #read(offset: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    if (readSync(this.#log, bytes, 0, length, offset) < length) throw new Error("the log of writes is truncated");
    return bytes;
  }

  close(): void {
    closeSync(this.#log);
  }
}
