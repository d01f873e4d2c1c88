/**
 * Total usage of the drives of one organization, including retained drives of ended rooms, against the caps of its plan: each as last
 * measured, plus later changes and reservations of calls. Guests write without calls, and are held to the caps in the same way as to a
 * drive's own quota (guest-enforcement.ts).
 */
import type { OrgId } from "../../../../shared/ids.ts";
import { driveExceeded, driveWarning } from "../../orgs/index.ts";
import type { OrgDeps } from "../deps.ts";

/** One drive of them. */
interface Member {
  /** Waits until the drive has been measured. */
  known(): Promise<unknown>;
  /** Its usage, as far as it is known. */
  bytes: number;
}

export class OrgUsage {
  readonly #orgId: OrgId;
  readonly #deps: OrgDeps;
  readonly #members = new Set<Member>();
  /** Adds the rooms from before this daemon's start as members. */
  readonly #gather: () => Promise<void>;
  #gathered: Promise<void> | null = null;
  /** Usage of each retained drive, and their total: there may be many, and they change only by being added and removed. */
  readonly #kept = new Map<string, number>();
  #keptBytes = 0;
  /** Retained drives are measured one after another. */
  #lastMeasure: Promise<void> = Promise.resolve();
  /** Last measure of a retained drive without a known usage. */
  #firstMeasure: Promise<void> = Promise.resolve();
  /** Whether the soft cap was exceeded at the last check; null before the first, which reports nothing. */
  #isOverSoft: boolean | null = null;

  constructor(orgId: OrgId, deps: OrgDeps, gather: () => Promise<void>) {
    this.#orgId = orgId;
    this.#deps = deps;
    this.#gather = gather;
  }

  join(member: Member): void {
    this.#members.add(member);
  }

  leave(member: Member): void {
    this.#members.delete(member);
  }

  /** A drive that is no longer written to: its usage is the last known one, and is measured once more. */
  keep(roomUid: string, lastBytes: number | null, measure: () => Promise<number>): void {
    this.#setKept(roomUid, lastBytes ?? 0);
    this.measureKept(roomUid, measure);
    if (lastBytes === null) this.#firstMeasure = this.#lastMeasure;
  }

  /** Measures a retained drive after those that already wait. */
  measureKept(roomUid: string, measure: () => Promise<number>): void {
    const again = async () => {
      // A drive that is erased in the meantime, or cannot be read, retains its last known value.
      const bytes = this.#kept.has(roomUid) ? await measure().catch(() => null) : null;
      if (bytes !== null && this.#kept.has(roomUid)) this.#setKept(roomUid, bytes);
    };
    this.#lastMeasure = this.#lastMeasure.then(again);
  }

  /** A kept drive is gone. */
  drop(roomUid: string): void {
    this.#setKept(roomUid, 0);
    this.#kept.delete(roomUid);
  }

  #setKept(roomUid: string, bytes: number): void {
    this.#keptBytes += bytes - (this.#kept.get(roomUid) ?? 0);
    this.#kept.set(roomUid, bytes);
  }

  /** Waits until every drive has been measured, though perhaps not recently. */
  async known(): Promise<void> {
    this.#gathered ??= this.#gather().catch((error: unknown) => {
      this.#gathered = null;
      throw error;
    });
    await this.#gathered;
    await Promise.all([this.#firstMeasure, ...[...this.#members].map((member) => member.known())]);
    this.look();
  }

  get used(): number {
    let used = this.#keptBytes;
    for (const { bytes } of this.#members) used += bytes;
    return used;
  }

  /** The remaining bytes of the plan, negative when it is exceeded. */
  get left(): number {
    return this.#deps.capsOf(this.#orgId).hard_cap_bytes - this.used;
  }

  /** Throws quota_exceeded if `bytes` more, less the replaced ones, exceed the plan. */
  require(bytes: number, replaced: number): void {
    const { hard_cap_bytes } = this.#deps.capsOf(this.#orgId);
    const { used } = this;
    if (used + bytes - replaced > hard_cap_bytes) throw driveExceeded(used, hard_cap_bytes);
  }

  /** Reports the moment when the soft cap becomes exceeded. */
  look(): void {
    const { soft_cap_bytes: cap } = this.#deps.capsOf(this.#orgId);
    const { used } = this;
    const isOver = used > cap;
    if (isOver && this.#isOverSoft === false) this.#deps.onSoftExceeded(this.#orgId, { used, cap });
    this.#isOverSoft = isOver;
  }

  warnings(): string[] {
    const caps = this.#deps.capsOf(this.#orgId);
    const { used } = this;
    return used > caps.soft_cap_bytes ? [driveWarning(used, caps)] : [];
  }
}
