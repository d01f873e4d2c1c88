/**
 * Notifications for calls that wait on a room or an organization: a caller registers under a key, and reads again from its own cursor when
 * notified. A notification carries no data, so none can be lost. Waiters are woken in pieces of the event loop, in the order in which their
 * waits began.
 */

import { monotonicMs, startTimer, stopTimer } from "../clock.ts";
import { loopTime, type OwnerName, Pieces } from "../loop/index.ts";
import type { ServiceError } from "../service-error.ts";
import type { MaybePromise } from "./maybe-promise.ts";

interface Waiter {
  /** Rings of the bell at its last look. */
  rings: number;
  owner: OwnerName;
  ended: ServiceError | null;
  /** Ends the wait: true after a notification, false after its deadline. */
  settle(isRung: boolean): void;
}

interface Bell {
  rings: number;
  /** In the order of their waits: waiters that have not looked since the last ring come first. */
  waiters: Set<Waiter>;
  /** Waits past their deadlines; many may expire at the same time. */
  late: Set<Waiter>;
  isWaking: boolean;
  /** Callers that wait or read: the entry is removed with its last user. */
  users: number;
}

export interface Wait {
  /** Name of the awaited state, within its group. */
  key: string;
  /** Owner that is charged for the read after a notification. */
  owner: OwnerName;
  deadlineMs: number;
  signal: AbortSignal;
}

/** Exceeds the time of any request from resolving its room to waiting in it. */
const REMEMBERED_MS = 600_000;

export class Notifier {
  /** By group (a room, an organization) and key; a bell exists while it has waiters. */
  readonly #groups = new Map<string, Map<string, Bell>>();
  readonly #ended = new Map<string, ServiceError>();
  #closed: ServiceError | null = null;
  #rung: (group: string, key: string | null) => void = () => {};

  /** Calls the observer at each notification, with or without waiters; its key is null for a whole group. */
  observe(rung: (group: string, key: string | null) => void): void {
    this.#rung = rung;
  }

  /** After a commit: its waiters look again. */
  ring(group: string, key: string): void {
    const bell = this.#groups.get(group)?.get(key);
    if (bell) ringOne(bell);
    this.#rung(group, key);
  }

  /** Notifies all waiters of a group. */
  ringAll(group: string): void {
    for (const bell of this.#groups.get(group)?.values() ?? []) ringOne(bell);
    this.#rung(group, null);
  }

  /** Ends every wait of a group with this error, also waits that are about to start. */
  end(group: string, error: ServiceError): void {
    this.#ended.set(group, error);
    startTimer(() => this.#ended.delete(group), REMEMBERED_MS).unref();
    for (const bell of this.#groups.get(group)?.values() ?? []) endOne(bell, error);
  }

  /** An ended group is open again. */
  reopen(group: string): void {
    this.#ended.delete(group);
  }

  /** Throws the error with which the group was ended. */
  requireOpen(group: string): void {
    const error = this.#closed ?? this.#ended.get(group);
    if (error) throw error;
  }

  /** Ends every current and future wait. */
  close(error: ServiceError): void {
    this.#closed = error;
    for (const bells of this.#groups.values()) for (const bell of bells.values()) endOne(bell, error);
  }

  /**
   * Returns the result of `look`, now or after a ring; null if it finds nothing by the deadline, or the waiter has gone. `look` may throw
   * to end the wait. Throws the error with which the group was ended.
   */
  async wait<T>(
    group: string,
    { key, owner, deadlineMs, signal }: Wait,
    look: () => MaybePromise<T | null>,
  ): Promise<T | null> {
    const end = monotonicMs() + deadlineMs;
    const bell = this.#take(group, key);
    try {
      for (;;) {
        const { rings } = bell;
        const result = look();
        const found = result instanceof Promise ? await result : result;
        if (found !== null) return found;
        const left = end - monotonicMs();
        if (left <= 0 || signal.aborted) return null;
        this.requireOpen(group);
        if (bell.rings === rings && !(await rung(bell, owner, Math.ceil(left), signal))) return null;
      }
    } finally {
      this.#leave(group, key, bell);
    }
  }

  #take(group: string, key: string): Bell {
    const keys = this.#groups.get(group) ?? new Map<string, Bell>();
    this.#groups.set(group, keys);
    const bell = keys.get(key) ?? { rings: 0, waiters: new Set(), late: new Set(), isWaking: false, users: 0 };
    keys.set(key, bell);
    bell.users++;
    return bell;
  }

  #leave(group: string, key: string, bell: Bell): void {
    if (--bell.users > 0) return;
    const keys = this.#groups.get(group);
    keys?.delete(key);
    if (keys?.size === 0) this.#groups.delete(group);
  }
}

/** Resolves to true after a notification, to false at the deadline or when `signal` aborts. Rejects with the error that ended the group. */
function rung(bell: Bell, owner: OwnerName, deadlineMs: number, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const timer =
    deadlineMs === Number.POSITIVE_INFINITY ? undefined : startTimer(() => expire(bell, waiter), deadlineMs);
  const aborted = () => settle(false);
  const waiter: Waiter = { rings: bell.rings, owner, ended: null, settle };
  function settle(isRung: boolean): void {
    stopTimer(timer);
    signal.removeEventListener("abort", aborted);
    bell.waiters.delete(waiter);
    bell.late.delete(waiter);
    if (waiter.ended) reject(waiter.ended);
    else resolve(isRung);
  }
  bell.waiters.add(waiter);
  signal.addEventListener("abort", aborted, { once: true });
  return promise;
}

function expire(bell: Bell, waiter: Waiter): void {
  bell.waiters.delete(waiter);
  bell.late.add(waiter);
  if (!bell.isWaking) void wakeAll(bell);
}

function ringOne(bell: Bell): void {
  bell.rings++;
  if (!bell.isWaking) void wakeAll(bell);
}

function endOne(bell: Bell, error: ServiceError): void {
  for (const waiter of bell.waiters) waiter.ended ??= error;
  ringOne(bell);
}

async function wakeAll(bell: Bell): Promise<void> {
  bell.isWaking = true;
  let pieces: Pieces | null = null;
  for (let next = nextOf(bell); next; next = nextOf(bell)) {
    pieces ??= new Pieces(loopTime, next.owner, "bell.wake");
    next.settle(!bell.late.has(next));
    // The waiter's read runs in the next microtask, before this loop continues.
    await null;
    const turn = pieces.next();
    if (turn) await turn;
  }
  bell.isWaking = false;
}

function nextOf({ late, waiters, rings }: Bell): Waiter | null {
  const [expired] = late;
  if (expired) return expired;
  const [first] = waiters;
  return first && first.rings !== rings ? first : null;
}
