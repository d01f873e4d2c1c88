/**
 * Quota enforcement for guests, which write past the API: the quota of their drive, if the kernel does not enforce it
 * (host/files/project-quota.ts), and the plan's cap for all drives of the organization. Writes by calls are refused in room-quota.ts.
 *
 * A drive is measured when the disk has lost enough space, or enough names, that it could be over its limit, and every some seconds anyway,
 * because deletes in another drive hide its growth. A walk of a large drive takes a bounded share of a core. The effect of a measure, and
 * the meaning of the modes for a guest, are in over-quota.ts.
 */

import { monotonicMs } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import { describeError } from "../../../core/service-error.ts";
import type { ProcessRecord } from "../../../host/process.ts";
import { modeFound, type ShareMode, type Throttle } from "../../../host/virtiofs/throttle.ts";
import type { DriveRoom } from "../deps.ts";
import type { Measured } from "./measure.ts";
import { type Free, freeOn } from "./measuring.ts";
import type { OrgUsage } from "./org-usage.ts";
import { modeAfter } from "./over-quota.ts";
import type { Usage } from "./usage.ts";

/** Interval of the check of the disk's free space. */
export const LOOK_EVERY_MS = 1000;
/** A drive with guests is measured at least this often, unless measuring takes more than this share of a core. */
export const MEASURE_EVERY_MS = 10_000;
const ROUTINE_SHARE = 1 / 20;
/** The share for a drive that may be over its limit, or is. */
const URGENT_SHARE = 1 / 4;

export type QuotaRoom = Pick<DriveRoom, "room_id" | "room_uid" | "org_id" | "drive_directory" | "drive_limit_bytes">;

export interface QuotaDeps {
  usage: Usage;
  limitEntries: number;
  /** Rooms that have guests. */
  rooms(): QuotaRoom[];
  sharesOf(roomUid: string): ProcessRecord[];
  kernelUse(directory: string): object | null;
  restraints: Pick<Throttle, "set">;
  onChange(room: QuotaRoom, mode: ShareMode, measured: Measured): void;
  log: Log;
}

interface Watch {
  mode: ShareMode;
  measured: Measured | null;
  /** Free space when the last measure began. */
  free: Free;
  finishedAt: number;
  tookMs: number;
  measuring: boolean;
  /** Measure after the drive was stopped; growth is relative to it. */
  stoppedAt: Measured | null;
  /** Shares with the mode confirmed. */
  applied: Set<string>;
}

export class Quota {
  readonly #deps: QuotaDeps;
  readonly #watches = new Map<string, Watch>();
  #looked = false;

  constructor(deps: QuotaDeps) {
    this.#deps = deps;
  }

  modeOf(roomUid: string): ShareMode {
    // Rooms with guests have a watch from the first check on.
    return this.#watches.get(roomUid)?.mode ?? (this.#looked ? "open" : this.#modeFound(roomUid));
  }

  forget(roomUid: string): void {
    this.#watches.delete(roomUid);
  }

  /** Checks every room with guests; to be called every LOOK_EVERY_MS. */
  look(): void {
    this.#looked = true;
    for (const room of this.#deps.rooms()) {
      const watch = this.#watches.get(room.room_uid) ?? newWatch(this.#modeFound(room.room_uid));
      this.#watches.set(room.room_uid, watch);
      this.#apply(room, watch);
      if (watch.measuring || !this.#isDue(room, watch)) continue;
      watch.measuring = true;
      this.#measure(room, watch)
        .catch((error: unknown) =>
          this.#deps.log.warn("failed to measure a drive", { room_id: room.room_id, error: describeError(error) }),
        )
        .finally(() => {
          watch.measuring = false;
        });
    }
  }

  #isDue(room: QuotaRoom, { mode, measured, free, finishedAt, tookMs }: Watch): boolean {
    if (measured === null) return true;
    const sinceMs = monotonicMs() - finishedAt;
    if (sinceMs >= Math.max(MEASURE_EVERY_MS, tookMs / ROUTINE_SHARE)) return true;
    if (sinceMs < tookMs / URGENT_SHARE) return false;
    if (mode !== "open") return true;
    const now = freeOn(room.drive_directory);
    return (
      free.bytes - now.bytes >= Math.min(room.drive_limit_bytes - measured.used_bytes, this.#orgOf(room).left) ||
      free.names - now.names >= this.#deps.limitEntries - measured.entry_count
    );
  }

  async #measure(room: QuotaRoom, watch: Watch): Promise<void> {
    const before = watch.mode;
    const { measured, free, took_ms: tookMs } = await this.#deps.usage.of(room).measurement();
    const org = this.#orgOf(room);
    await org.known();
    Object.assign(watch, { measured, free, tookMs, finishedAt: monotonicMs() });
    const allowance = {
      bytes: room.drive_limit_bytes,
      entries: this.#deps.limitEntries,
      org_bytes_left: org.left,
    };
    watch.mode = modeAfter(before, measured, allowance, watch.stoppedAt);
    if (before === "open" || watch.mode === "open") watch.stoppedAt = null;
    else watch.stoppedAt ??= measured;
    if (watch.mode === before) return;
    watch.applied.clear();
    this.#apply(room, watch);
    this.#deps.onChange(room, watch.mode, measured);
  }

  #orgOf(room: QuotaRoom): OrgUsage {
    return this.#deps.usage.ofOrg(room.org_id);
  }

  /** The mode that an earlier daemon may have set on the room's guests: a restart lifts no restraint. */
  #modeFound(roomUid: string): ShareMode {
    const found = this.#deps.sharesOf(roomUid).map(modeFound);
    return found.find((mode) => mode !== "open") ?? "open";
  }

  #apply(room: QuotaRoom, { mode, applied }: Watch): void {
    // If the kernel enforces the quota, files need no limit.
    const largestFile = this.#deps.kernelUse(room.drive_directory) ? Number.POSITIVE_INFINITY : room.drive_limit_bytes;
    for (const share of this.#deps.sharesOf(room.room_uid)) {
      const key = `${share.pid}:${share.start_ticks}`;
      if (applied.has(key)) continue;
      applied.add(key);
      try {
        this.#deps.restraints.set(share, mode, largestFile);
      } catch (error) {
        this.#deps.log.error("failed to enforce a drive's quota", {
          room_id: room.room_id,
          mode,
          error: describeError(error),
        });
      }
    }
  }
}

function newWatch(mode: ShareMode): Watch {
  return {
    mode,
    measured: null,
    free: { bytes: 0, names: 0 },
    finishedAt: 0,
    tookMs: 0,
    measuring: false,
    stoppedAt: null,
    applied: new Set(),
  };
}
