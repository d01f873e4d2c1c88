/**
 * Usage of one room's drive: the estimate, the measures that renew it, and the quota reservations of calls. Guests write without calls, so
 * a measure is repeated once it is stale.
 */

import { monotonicMs } from "../../../core/clock.ts";
import type { MaybePromise } from "../../../core/concurrency/maybe-promise.ts";
import { orAfter } from "../../../core/concurrency/published.ts";
import { ownerOf, type PieceTurns } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { DriveDeps, UsageRoom } from "../deps.ts";
import { type Change, Estimate, type Moment } from "./estimate.ts";
import { type Measured, measureTree } from "./measure.ts";
import { freeOn, type Measurement, Measuring } from "./measuring.ts";
import type { OrgUsage } from "./org-usage.ts";
import { MAX_BEYOND } from "./over-quota.ts";
import { Reservation } from "./reservation.ts";

export type RoomUsageDeps = Pick<DriveDeps, "limitEntries" | "sharesOf" | "kernelUse" | "onUsed">;

const FRESH_MS = 2000;
// A drive with a million files takes seconds to measure; measuring may take this share of one core at most.
const LARGEST_SHARE = 1 / 20;
// Maximum wait of a call for a new measure if there is an old one.
const PATIENCE_MS = 100;
const NOTHING: Measured = { used_bytes: 0, file_count: 0, entry_count: 0, is_complete: true, kept_by_kernel: false };

export class RoomUsage {
  readonly #room: UsageRoom;
  readonly #deps: RoomUsageDeps;
  /** Usage of all drives of the organization, this one included. */
  readonly org: OrgUsage;
  readonly #estimate = new Estimate();
  readonly #measuring: Measuring;
  readonly #claims = new Set<Reservation>();
  /** Claims by the inode of their temporary file. */
  readonly #making = new Map<bigint, Reservation>();
  /** Last reported usage. */
  #toldBytes: number | null = null;
  #staleAt = 0;
  /** Called when the drive is released and the last write in progress has left it. */
  #onLeft = () => {};

  constructor(room: UsageRoom, deps: RoomUsageDeps, org: OrgUsage) {
    this.#room = room;
    this.#deps = deps;
    this.org = org;
    this.#measuring = new Measuring(room.drive_directory, ownerOf(room.org_id), (pieces) => this.#measure(pieces));
  }

  /** Usage as far as it is known, including reservations. */
  get bytes(): number {
    return this.#estimate.bytes;
  }

  /** Usage without reservations; null if unknown. */
  get knownBytes(): number | null {
    return this.#estimate.measured?.used_bytes ?? null;
  }

  /** Waits until the drive has been measured. */
  async known(): Promise<void> {
    if (!this.#estimate.measured) await this.current();
  }

  /** Not older than some seconds, except on drives that take long to measure. A cached value is returned synchronously. */
  current(): MaybePromise<Measured> {
    const kept = this.#askKernel();
    if (kept) return kept;
    const known = this.#estimate.measured;
    if (known && monotonicMs() < this.#staleAt) return known;
    return this.#measured(known);
  }

  async #measured(known: Measured | null): Promise<Measured> {
    const measuring = this.#join();
    if (!known) {
      const { measured } = await measuring;
      return this.#estimate.measured ?? measured;
    }
    await orAfter(measuring, PATIENCE_MS, null).catch(() => {});
    return this.#estimate.measured ?? known;
  }

  /** A measure that ends after this call, and the free space of the disk when it began. */
  async measurement(): Promise<Measurement> {
    const kept = this.#askKernel();
    return kept ? { measured: kept, free: freeOn(this.#room.drive_directory), took_ms: 0 } : await this.#join();
  }

  /**
   * The drive is released: measures and writes in progress are aborted. `onLeft` is called when those writes have left it; not called if
   * there are none.
   */
  end(onLeft: () => void): void {
    this.#measuring.end();
    if (this.#claims.size > 0) this.#onLeft = onLeft;
    for (const claim of this.#claims) claim.cut();
  }

  /** Starts a write that makes `entries` new names. Throws drive_full, quota_exceeded, room_destroying. */
  async claim(limitBytes: number, entries: number): Promise<Reservation> {
    await this.current();
    await this.org.known();
    if (this.#measuring.isEnded) throw new ServiceError("room_destroying");
    const since = this.moment;
    let made: bigint | null = null;
    const claim = new Reservation(entries, {
      makes: (inode) => {
        made = inode;
        this.#making.set(inode, claim);
      },
      require: (bytes, replaced) => {
        this.#require(limitBytes, bytes - replaced, entries);
        this.org.require(bytes, replaced);
      },
      settle: (change) => {
        this.change(change, since);
        this.org.look();
      },
      end: () => {
        this.#claims.delete(claim);
        if (made !== null && this.#making.get(made) === claim) this.#making.delete(made);
        this.#estimate.release(claim);
        if (this.#claims.size > 0) return;
        this.#onLeft();
        this.#onLeft = () => {};
      },
    });
    this.#claims.add(claim);
    this.#estimate.claim(claim);
    return claim;
  }

  /** To be saved at the start of a change to the drive. */
  get moment(): Moment {
    return this.#estimate.moment;
  }

  /** Additions and removals of a call that started at that moment. */
  change(change: Change, since: Moment): void {
    // The drive had more on it than was known.
    if (!this.#estimate.change(change, since)) this.#staleAt = 0;
    this.#tell();
  }

  #require(limitBytes: number, bytes: number, addedEntries: number): void {
    const limitEntries = this.#deps.limitEntries;
    // The claimed entries already include this claim's.
    const verdict = this.#estimate.admits({ bytes, entries: 0 }, { bytes: limitBytes, entries: limitEntries });
    const full = addedEntries > 0 && verdict.entries !== "yes" ? "entries" : verdict.bytes !== "yes" ? "bytes" : null;
    if (!full) return;
    // A retry may be admitted.
    if (verdict[full] === "perhaps") this.#staleAt = 0;
    if (full === "entries") {
      throw new ServiceError("drive_full", {
        detail: `The drive's quota of ${limitEntries} files and directories is used up.`,
        details: { limit_entries: limitEntries, entry_count: this.#estimate.entries - addedEntries },
      });
    }
    throw new ServiceError("drive_full", {
      detail: `The drive's quota of ${limitBytes} bytes is used up.`,
      details: { limit_bytes: limitBytes, used_bytes: this.#estimate.bytes },
    });
  }

  /** Excludes temporary files: their claims count them, as the kernel does. */
  #askKernel(): Measured | null {
    const use = this.#deps.kernelUse(this.#room.drive_directory);
    if (use === null) return null;
    const temporary = this.#claims.values().filter((claim) => claim.written_bytes > 0);
    const { bytes, inodes } = temporary.reduce(
      (left, { written_bytes }) => ({ bytes: left.bytes - written_bytes, inodes: left.inodes - 1 }),
      use,
    );
    const entries = Math.max(0, inodes);
    const counts = { used_bytes: Math.max(0, bytes), file_count: entries, entry_count: entries };
    const measured = { ...counts, is_complete: true, kept_by_kernel: true };
    this.#estimate.set(measured);
    this.#tell();
    return measured;
  }

  /** The measure in progress, or a new one. For a released drive returns the last known values. */
  async #join(): Promise<Measurement> {
    try {
      return await this.#measuring.join();
    } catch (error) {
      if (!this.#measuring.isEnded) throw error;
      return { measured: this.#estimate.measured ?? NOTHING, free: { bytes: 0, names: 0 }, took_ms: 0 };
    }
  }

  async #measure(pieces: PieceTurns): Promise<Measured> {
    const startedAt = monotonicMs();
    this.#estimate.begin();
    try {
      const measured = await this.#walk(pieces);
      this.#estimate.finish(measured);
      this.#staleAt = monotonicMs() + Math.max(FRESH_MS, (monotonicMs() - startedAt) / LARGEST_SHARE);
      this.#tell();
      return measured;
    } catch (error) {
      this.#estimate.giveUp();
      throw error;
    }
  }

  async #walk(pieces: PieceTurns): Promise<Measured> {
    const { drive_directory, room_uid } = this.#room;
    // With more entries it is far over its limit, and a guest that makes names faster than they are counted would never let a measure end.
    const most = this.#deps.limitEntries + MAX_BEYOND.entries + 1;
    const shares = this.#deps.sharesOf(room_uid);
    const options = { setAside: (inode: bigint) => this.#making.get(inode)?.bytes ?? null, shares, most, pieces };
    const measured = await measureTree(drive_directory, options);
    // A directory that moved may be found the next time; over-quota.ts handles a guest that keeps moving it.
    return measured.is_complete || measured.entry_count >= most
      ? measured
      : await measureTree(drive_directory, options);
  }

  #tell(): void {
    const bytes = this.knownBytes;
    if (bytes === null || bytes === this.#toldBytes) return;
    this.#toldBytes = bytes;
    this.#deps.onUsed(this.#room.room_uid, bytes);
  }
}
