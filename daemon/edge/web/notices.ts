/** Result of a form, shown on the next page: once, to the session that has sent the form. */
import { LRUCache } from "lru-cache";
import type { SessionId } from "../../../shared/ids.ts";

/** Above this, the oldest is dropped. */
const MOST = 1000;

export class Notices {
  readonly #said = new LRUCache<SessionId, string>({ max: MOST });

  put(sessionId: SessionId | null, text: string): void {
    if (sessionId !== null) this.#said.set(sessionId, text);
  }

  take(sessionId: SessionId | null): string | null {
    const text = sessionId === null ? undefined : this.#said.get(sessionId);
    if (sessionId !== null) this.#said.delete(sessionId);
    return text ?? null;
  }
}
