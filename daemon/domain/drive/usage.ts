/**
 * Owns how much of its quota each room's drive takes: what was measured last, what API writes have changed since, and what
 * writes under way have set aside. Guests write past the API, so a measure is taken again once it is old. The drive of a room
 * that has ended counts for its organization as long as it is kept.
 */
import type { OrgId } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { DriveDeps, DriveRoom, OrgDeps } from "./deps.ts";
import { type Measured, measureTree } from "./measure.ts";
import { OrgUsage } from "./org-usage.ts";

type Room = Pick<DriveRoom, "room_uid" | "org_id" | "drive_directory">;
type Deps = OrgDeps & Pick<DriveDeps, "limitEntries" | "sharesOf" | "kernelUse" | "onUsed">;

export class Usage {
  readonly #rooms = new Map<string, RoomUsage>();
  readonly #orgs = new Map<OrgId, OrgUsage>();
  /** Whose the drives are that are kept after their room's end. */
  readonly #kept = new Map<string, OrgUsage>();
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  of(room: Room): RoomUsage {
    const known = this.#rooms.get(room.room_uid);
    if (known) return known;
    const org = this.ofOrg(room.org_id);
    const usage = new RoomUsage(room, this.#deps, org);
    this.#rooms.set(room.room_uid, usage);
    org.join(usage);
    return usage;
  }

  ofOrg(orgId: OrgId): OrgUsage {
    const gather = () => {
      for (const room of this.#deps.roomsOf(orgId)) this.of(room);
      for (const room of this.#deps.keptOf(orgId)) if (!this.#kept.has(room.room_uid)) this.keep(room);
    };
    const known = this.#orgs.get(orgId) ?? new OrgUsage(orgId, this.#deps, gather);
    this.#orgs.set(orgId, known);
    return known;
  }

  /** The room has ended, and this is where its drive lies from now on. */
  keep(room: Room): void {
    const { room_uid, drive_directory } = room;
    const lastBytes = this.#rooms.get(room_uid)?.lastBytes ?? null;
    this.forget(room_uid);
    const org = this.ofOrg(room.org_id);
    this.#kept.set(room_uid, org);
    org.keep(room_uid, lastBytes, async () => {
      const use = this.#deps.kernelUse(drive_directory);
      return use ? use.bytes : (await measureTree(drive_directory, () => false)).used_bytes;
    });
  }

  forget(roomUid: string): void {
    const usage = this.#rooms.get(roomUid);
    usage?.org.leave(usage);
    this.#rooms.delete(roomUid);
    this.#kept.get(roomUid)?.drop(roomUid);
    this.#kept.delete(roomUid);
  }
}

const FRESH_MS = 2000;
// A drive with a million files takes seconds to measure; measuring may take this share of one core at most.
const LARGEST_SHARE = 1 / 20;
// How long a call waits for a new measure when there is an old one.
const PATIENCE_MS = 100;

/** What the API has added to a drive or taken away. */
export type Change = Pick<Measured, "used_bytes" | "file_count" | "entry_count">;

class RoomUsage {
  readonly #room: Room;
  readonly #deps: Deps;
  /** Of all drives of the organization, this one among them. */
  readonly org: OrgUsage;
  readonly #claims = new Set<Claim>();
  #measured: Measured | null = null;
  /** What it took when that was last known; null before. */
  #lastBytes: number | null = null;
  #staleAt = 0;
  #measuring: Promise<Measured> | null = null;
  /** Counts the measures that are no longer wanted. */
  #generation = 0;

  constructor(room: Room, deps: Deps, org: OrgUsage) {
    this.#room = room;
    this.#deps = deps;
    this.org = org;
  }

  get lastBytes(): number | null {
    return this.#lastBytes;
  }

  /** What it takes, as far as that is known, and what is set aside. */
  get bytes(): number {
    return (this.#measured?.used_bytes ?? this.#lastBytes ?? 0) + this.#claimed;
  }

  /** Waits until it has been measured; where the measure says nothing any more, for a little while only. */
  async known(): Promise<void> {
    if (this.#measured) return;
    const measured = this.current();
    if (this.#lastBytes === null) await measured;
    else await Promise.race([measured.catch(() => {}), Bun.sleep(PATIENCE_MS)]);
  }

  /** Not older than some seconds, except on drives that take long to measure. */
  async current(): Promise<Measured> {
    const kept = this.#askKernel();
    if (kept) return kept;
    if (this.#measured && performance.now() < this.#staleAt) return this.#measured;
    this.#measuring ??= this.#measure();
    if (!this.#measured) return await this.#measuring;
    await Promise.race([this.#measuring.catch(() => {}), Bun.sleep(PATIENCE_MS)]);
    return this.#measured ?? (await this.#measuring);
  }

  /** A measure that begins now. */
  async fresh(): Promise<Measured> {
    const kept = this.#askKernel();
    if (kept) return kept;
    await this.#measuring?.catch(() => {});
    this.#measuring ??= this.#measure();
    return await this.#measuring;
  }

  /** The measure says nothing any more: the next call waits for a new one. */
  invalidate(): void {
    this.#measured = null;
    this.#measuring = null;
    this.#generation++;
  }

  /** Begins a write that makes so many new names. What is under `temporary` is counted by the claim. */
  async claim(limitBytes: number, entries: number, temporary: string | null = null): Promise<Claim> {
    await this.current();
    await this.org.known();
    const claim = new Claim(temporary, entries, {
      grow: (bytes, replaced) => {
        this.#checkEntries(entries);
        this.#checkLimit(limitBytes, bytes, replaced);
        this.org.require(bytes, replaced);
      },
      settle: (change) => {
        this.change(change);
        this.org.look();
      },
      end: () => this.#claims.delete(claim),
    });
    this.#claims.add(claim);
    return claim;
  }

  /** What the API has just added or taken away. */
  change(change: Change): void {
    if (!this.#measured) return;
    this.#know({
      ...this.#measured,
      entry_count: Math.max(0, this.#measured.entry_count + change.entry_count),
      used_bytes: Math.max(0, this.#measured.used_bytes + change.used_bytes),
      file_count: Math.max(0, this.#measured.file_count + change.file_count),
    });
  }

  get #claimed(): number {
    return this.#claims.values().reduce((sum, claim) => sum + claim.bytes, 0);
  }

  #checkLimit(limitBytes: number, bytes: number, replaced: number): void {
    const used = (this.#measured?.used_bytes ?? 0) + this.#claimed;
    if (used + bytes - replaced <= limitBytes) return;
    throw new ServiceError("drive_full", {
      detail: `The drive's quota of ${limitBytes} bytes is used up.`,
      details: { limit_bytes: limitBytes, used_bytes: used },
    });
  }

  #checkEntries(added: number): void {
    if (added === 0) return;
    // The claim itself is among them.
    const claimed = this.#claims.values().reduce((sum, claim) => sum + claim.entries, 0);
    const entries = (this.#measured?.entry_count ?? 0) + claimed;
    const limit = this.#deps.limitEntries;
    if (entries <= limit) return;
    throw new ServiceError("drive_full", {
      detail: `The drive's quota of ${limit} files and directories is used up.`,
      details: { limit_entries: limit, entry_count: entries - added },
    });
  }

  /** Temporary files are counted by the kernel and by their claims: here they are not. */
  #askKernel(): Measured | null {
    const use = this.#deps.kernelUse(this.#room.drive_directory);
    if (use === null) return null;
    const temporary = this.#claims.values().filter((claim) => claim.written_bytes > 0);
    const { bytes, inodes } = temporary.reduce(
      (left, { written_bytes }) => ({ bytes: left.bytes - written_bytes, inodes: left.inodes - 1 }),
      use,
    );
    const entries = Math.max(0, inodes);
    const counted = { used_bytes: Math.max(0, bytes), file_count: entries, entry_count: entries };
    return this.#know({ ...counted, too_deep: false, kept_by_kernel: true });
  }

  #know(measured: Measured): Measured {
    if (measured.used_bytes !== this.#lastBytes) this.#deps.onUsed(this.#room.room_uid, measured.used_bytes);
    this.#lastBytes = measured.used_bytes;
    this.#measured = measured;
    return measured;
  }

  async #walk(): Promise<Measured> {
    const isClaimed = (name: string) => this.#claims.values().some((claim) => claim.temporary === name);
    const shares = this.#deps.sharesOf(this.#room.room_uid);
    return await measureTree(this.#room.drive_directory, isClaimed, shares);
  }

  async #measure(): Promise<Measured> {
    const startedAt = performance.now();
    const generation = this.#generation;
    try {
      const measured = await this.#walk();
      if (generation === this.#generation) {
        this.#know(measured);
        this.#staleAt = performance.now() + Math.max(FRESH_MS, (performance.now() - startedAt) / LARGEST_SHARE);
      }
      return measured;
    } finally {
      if (generation === this.#generation) this.#measuring = null;
    }
  }
}

interface ClaimRoom {
  grow(bytes: number, replaced: number): void;
  settle(change: Change): void;
  end(): void;
}

/** The share of the quota that one write has set aside while it is under way. */
class Claim implements Disposable {
  readonly temporary: string | null;
  readonly entries: number;
  readonly #room: ClaimRoom;
  bytes = 0;
  /** How much of it is in the temporary file. */
  written_bytes = 0;

  constructor(temporary: string | null, entries: number, room: ClaimRoom) {
    this.temporary = temporary;
    this.entries = entries;
    this.#room = room;
  }

  /** Sets more aside; `replaced` is what the write will free in the end. Throws drive_full, quota_exceeded. */
  grow(bytes: number, replaced: number): void {
    this.#room.grow(bytes, replaced);
    this.bytes += bytes;
  }

  /** The write is done, and this is what it changed. */
  settle(change: Change): void {
    this.#room.end();
    this.#room.settle(change);
  }

  [Symbol.dispose](): void {
    this.#room.end();
  }
}
