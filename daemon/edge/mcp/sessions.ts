/**
 * Owns what is remembered between the requests of one MCP client: whether it has looked at health and usage, and which of its
 * calls are under way. The protocol's newest revision has no sessions, so that nothing here is needed to answer a request; what
 * was forgotten costs a client one more look. Clients of that revision with one key and one name share what they have looked at,
 * until one of them connects; calls under way are told apart by number only where a session has an id.
 */
import type { KeyId } from "../../../shared/ids.ts";
import { monotonicMs } from "../../core/clock.ts";

const MOST_SESSIONS = 4096;
/** Who has been silent for so long looks again before changing anything. */
const SESSION_MS = 60 * 60_000;

export class Session {
  health = false;
  usage = false;
  /** Seen before a change, and not shown yet. */
  looked: Record<string, unknown> = {};
  usedAt = monotonicMs();
  readonly #calls = new Map<string | number, AbortController>();

  /** A call's own signal, which `cancel` ends. */
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

  /** A client begins: what one before it has looked at, it has not. */
  open(): void {
    this.health = false;
    this.usage = false;
    this.looked = {};
  }
}

export class Sessions {
  /** Those that were used last come last. */
  readonly #sessions = new Map<string, Session>();

  /** A key never gets to another's session, whatever it says that its own is called. */
  of(keyId: KeyId, name: string): Session {
    const id = `${keyId} ${name}`;
    const known = this.#sessions.get(id);
    const session = known && monotonicMs() - known.usedAt < SESSION_MS ? known : new Session();
    session.usedAt = monotonicMs();
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MOST_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
    return session;
  }

  end(keyId: KeyId, name: string): void {
    this.#sessions.delete(`${keyId} ${name}`);
  }
}
