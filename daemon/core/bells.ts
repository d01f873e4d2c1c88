/**
 * Owns being woken: whoever waits for something of a room or an organization waits at a bell, and looks again from its own
 * cursor when it rings. A bell carries no news, so none can be lost; built on Published, as every other wait of the daemon.
 */
import { DeadlineError, Published } from "./published.ts";
import type { ServiceError } from "./service-error.ts";

interface Bell {
  /** Null while the thing waited at goes on, else how the waits at it end. */
  rung: Published<ServiceError | null>;
  /** Who waits at it or is just looking again: it stays theirs until the last has left. */
  users: number;
}

export interface Wait {
  /** Names what is looked at, within its group. */
  key: string;
  deadlineMs: number;
  signal: AbortSignal;
}

/** No request takes longer from finding its room to waiting in it. */
const REMEMBERED_MS = 600_000;

export class Bells {
  /** By group (a room, an organization) and key; a bell exists while somebody waits at it. */
  readonly #groups = new Map<string, Map<string, Bell>>();
  readonly #ended = new Map<string, ServiceError>();
  #closed: ServiceError | null = null;

  /** After a commit: whoever waits at it looks again. */
  ring(group: string, key: string): void {
    this.#groups.get(group)?.get(key)?.rung.set(null);
  }

  /** Everybody of a group looks again. */
  ringAll(group: string): void {
    for (const { rung } of [...(this.#groups.get(group)?.values() ?? [])]) rung.set(null);
  }

  /** Ends every wait of a group by this error, also of those who are just on their way to one. */
  end(group: string, error: ServiceError): void {
    this.#ended.set(group, error);
    setTimeout(() => this.#ended.delete(group), REMEMBERED_MS).unref();
    for (const { rung } of [...(this.#groups.get(group)?.values() ?? [])]) rung.set(error);
  }

  /** Throws what the group was ended by. */
  requireOpen(group: string): void {
    const error = this.#closed ?? this.#ended.get(group);
    if (error) throw error;
  }

  /** Ends every wait, and each that is to begin. */
  close(error: ServiceError): void {
    this.#closed = error;
    for (const bells of [...this.#groups.values()]) for (const { rung } of [...bells.values()]) rung.set(error);
  }

  /**
   * What `look` finds, now or after a ring; null when it finds nothing by the deadline, or the waiter has gone. `look` may
   * throw to end the wait. Throws what the group was ended by.
   */
  async wait<T>(group: string, { key, deadlineMs, signal }: Wait, look: () => T | null): Promise<T | null> {
    const end = performance.now() + deadlineMs;
    const bell = this.#take(group, key);
    const { rung } = bell;
    try {
      for (;;) {
        const { generation } = rung;
        const found = look();
        if (found !== null) return found;
        const left = end - performance.now();
        if (left <= 0 || signal.aborted) return null;
        this.requireOpen(group);
        const ended = await rung.until(() => rung.generation !== generation, Math.ceil(left), signal);
        if (ended) throw ended;
      }
    } catch (error) {
      if (error instanceof DeadlineError) return null;
      throw error;
    } finally {
      this.#leave(group, key, bell);
    }
  }

  #take(group: string, key: string): Bell {
    const keys = this.#groups.get(group) ?? new Map<string, Bell>();
    this.#groups.set(group, keys);
    const bell = keys.get(key) ?? { rung: new Published<ServiceError | null>(null), users: 0 };
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
