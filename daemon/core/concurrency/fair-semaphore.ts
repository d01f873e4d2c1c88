/**
 * Fair semaphore with nested shares: per organization, and per sandbox within it. A caller waits if no slot is free: organizations take
 * turns, and within each its sandboxes.
 */

import { startTimer, stopTimer } from "../clock.ts";
import { DeadlineError } from "./published.ts";

export interface Asker {
  org_id: string;
  sandbox_id: string;
}

export interface Shares {
  all: number;
  org: number;
  sandbox: number;
  /** Maximum number of waiting calls of a sandbox. */
  waiting: number;
}

interface Share {
  taken: number;
  waiting: Set<() => void>;
}

interface Group {
  taken: number;
  /** By sandbox; the next in turn comes first. */
  members: Map<string, Share>;
}

export class FairSemaphore {
  readonly #shares: Shares;
  /** By organization; the next in turn comes first. */
  readonly #groups = new Map<string, Group>();
  #taken = 0;

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  /**
   * Resolves to a function that releases the slot, to be called once. Rejects with DeadlineError if no slot was free in time, immediately
   * if too many of the sandbox's callers wait already, or when the signal is aborted.
   */
  take(asker: Asker, deadlineMs: number, signal?: AbortSignal): Promise<() => void> {
    const { org_id, sandbox_id } = asker;
    const group = this.#groups.get(org_id) ?? { taken: 0, members: new Map() };
    const share = group.members.get(sandbox_id) ?? { taken: 0, waiting: new Set() };
    if (share.waiting.size >= this.#shares.waiting) {
      return Promise.reject(new DeadlineError("too many calls of the sandbox are already waiting"));
    }
    if (signal?.aborted) return Promise.reject(new DeadlineError("the wait was cancelled"));
    this.#groups.set(org_id, group);
    group.members.set(sandbox_id, share);
    return new Promise((resolve, reject) => {
      const end = () => {
        stopTimer(timer);
        signal?.removeEventListener("abort", giveUp);
      };
      const refuse = (why: string) => {
        end();
        share.waiting.delete(enter);
        this.#forget(asker, group, share);
        reject(new DeadlineError(why));
      };
      const giveUp = () => refuse("the wait was cancelled");
      const timer = startTimer(() => refuse(`no slot was free within ${deadlineMs} ms`), deadlineMs);
      signal?.addEventListener("abort", giveUp);
      const enter = () => {
        end();
        resolve(() => {
          this.#count(group, share, -1);
          this.#forget(asker, group, share);
          this.#handOut();
        });
      };
      share.waiting.add(enter);
      this.#handOut();
    });
  }

  #handOut(): void {
    while (this.#taken < this.#shares.all && this.#enterNext());
  }

  /** Whether a waiter got the next slot. */
  #enterNext(): boolean {
    for (const [org_id, group] of this.#groups) {
      if (group.taken >= this.#shares.org) continue;
      for (const [sandbox_id, share] of group.members) {
        const [enter] = share.waiting;
        if (!enter || share.taken >= this.#shares.sandbox) continue;
        share.waiting.delete(enter);
        this.#count(group, share, 1);
        // The last in their rows.
        this.#groups.delete(org_id);
        this.#groups.set(org_id, group);
        group.members.delete(sandbox_id);
        group.members.set(sandbox_id, share);
        enter();
        return true;
      }
    }
    return false;
  }

  #count(group: Group, share: Share, change: 1 | -1): void {
    this.#taken += change;
    group.taken += change;
    share.taken += change;
  }

  #forget({ org_id, sandbox_id }: Asker, group: Group, share: Share): void {
    if (share.taken === 0 && share.waiting.size === 0) group.members.delete(sandbox_id);
    if (group.members.size === 0) this.#groups.delete(org_id);
  }
}
