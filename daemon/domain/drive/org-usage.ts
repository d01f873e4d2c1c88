/**
 * Owns what the drives of one organization take together, those that are kept after their room's end among them, beside the caps
 * of its plan: each as it was measured last, with what calls have changed since and set aside. Guests write past the calls, and are kept to it as to a drive's own quota (quota.ts).
 */
import type { OrgId } from "../../../shared/ids.ts";
import { driveExceeded, driveWarning } from "../orgs/index.ts";
import type { OrgDeps } from "./deps.ts";

/** One drive of them. */
interface Member {
  /** Waits until it has been measured. */
  known(): Promise<unknown>;
  /** What it takes, as far as that is known. */
  bytes: number;
}

export class OrgUsage {
  readonly #orgId: OrgId;
  readonly #deps: OrgDeps;
  readonly #members = new Set<Member>();
  /** Makes members of all rooms that were there before this daemon. */
  #gather: (() => void) | null;
  /** What each kept drive takes, and all of them: there may be many, and they only change by coming and going. */
  readonly #kept = new Map<string, number>();
  #keptBytes = 0;
  /** Kept drives are measured one after another. */
  #lastMeasure: Promise<void> = Promise.resolve();
  /** The last of those measures without which nothing is known of a drive. */
  #firstMeasure: Promise<void> = Promise.resolve();
  /** Whether the soft cap was exceeded at the last look; null before the first, which tells nothing new. */
  #isOverSoft: boolean | null = null;

  constructor(orgId: OrgId, deps: OrgDeps, gather: () => void) {
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

  /** A drive that nothing is written to any more: it takes what it took, which is measured once more. */
  keep(roomUid: string, lastBytes: number | null, measure: () => Promise<number>): void {
    this.#setKept(roomUid, lastBytes ?? 0);
    this.measureKept(roomUid, measure);
    if (lastBytes === null) this.#firstMeasure = this.#lastMeasure;
  }

  /** After the measures of kept drives that wait already. */
  measureKept(roomUid: string, measure: () => Promise<number>): void {
    const again = async () => {
      // One that is erased meanwhile, or cannot be read, stays at what was known of it.
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

  /** Waits until every drive has been measured, if not just now. */
  async known(): Promise<void> {
    const gather = this.#gather;
    this.#gather = null;
    gather?.();
    await Promise.all([this.#firstMeasure, ...[...this.#members].map((member) => member.known())]);
    this.look();
  }

  get used(): number {
    let used = this.#keptBytes;
    for (const { bytes } of this.#members) used += bytes;
    return used;
  }

  /** What the plan still has, negative when it is exceeded. */
  get left(): number {
    return this.#deps.capsOf(this.#orgId).hard_cap_bytes - this.used;
  }

  /** Throws quota_exceeded when so much more, less what it replaces, is too much. */
  require(bytes: number, replaced: number): void {
    const { hard_cap_bytes } = this.#deps.capsOf(this.#orgId);
    const { used } = this;
    if (used + bytes - replaced > hard_cap_bytes) throw driveExceeded(used, hard_cap_bytes);
  }

  /** Tells when the soft cap has come to be exceeded. */
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
