/** Result of a form, shown on the next page: once, to the session that has sent the form. */
import type { SessionId } from "../../../shared/ids.ts";

/** Above this, the oldest is dropped. */
const MOST = 1000;

export class Notices {
  readonly #said = new Map<SessionId, string>();

  put(sessionId: SessionId | null, text: string): void {
    if (sessionId === null) return;
    this.#said.delete(sessionId);
    this.#said.set(sessionId, text);
    for (const oldest of this.#said.keys()) {
      if (this.#said.size <= MOST) break;
      this.#said.delete(oldest);
    }
  }

  take(sessionId: SessionId | null): string | null {
    const text = sessionId === null ? undefined : this.#said.get(sessionId);
    if (sessionId !== null) this.#said.delete(sessionId);
    return text ?? null;
  }
}
