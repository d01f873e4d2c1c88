/**
 * State between the requests of one MCP client: whether it has checked health and usage, and its calls in progress. The protocol's newest
 * revision has no sessions, so no response depends on this state; losing it costs a client one more check. Clients of that revision with
 * the same key and name share their checks until one of them connects; calls in progress are distinguished by number only if a session has
 * an ID.
 */
import { LRUCache } from "lru-cache";
import type { KeyId } from "../../../shared/ids.ts";
import { monotonicMs } from "../../core/clock.ts";

const MAX_SESSIONS = 4096;
/** After this time without a request, a client checks again before a change. */
const SESSION_MS = 60 * 60_000;

export class Session {
  health = false;
  usage = false;
  /** Check results from before a change that were not shown yet. */
  looked: Record<string, unknown> = {};
  usedAt = monotonicMs();
  readonly #calls = new Map<string | number, AbortController>();

  /** Begins a call; `cancel` aborts its signal. */
  begin(id: string | number): { signal: AbortSignal; over(): void } {
    const controller = new AbortController();
    this.#calls.set(id, controller);
    const over = () => {
      if (this.#calls.get(id) === controller) this.#calls.delete(id);
    };
    return { signal: controller.signal, over };
  }

  cancel(id: string | number): void {
    this.#calls.get(id)?.abort();
  }

  /** Resets the checks for a newly connected client. */
  open(): void {
    this.health = false;
    this.usage = false;
    this.looked = {};
  }
}

export class Sessions {
  readonly #sessions = new LRUCache<string, Session>({ max: MAX_SESSIONS });

  /** Sessions are separate per key, whatever name a client gives. */
  of(keyId: KeyId, name: string): Session {
    const id = `${keyId} ${name}`;
    const known = this.#sessions.get(id);
    const session = known && monotonicMs() - known.usedAt < SESSION_MS ? known : new Session();
    session.usedAt = monotonicMs();
    this.#sessions.set(id, session);
    return session;
  }

  end(keyId: KeyId, name: string): void {
    this.#sessions.delete(`${keyId} ${name}`);
  }
}
