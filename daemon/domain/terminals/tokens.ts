/**
 * Owns the tokens by which a terminal is attached to without an API key, as browsers do: each opens one terminal, for a
 * short time. Only their hashes are kept, and only in memory: a restart ends them all.
 */
import { createHash, randomBytes } from "node:crypto";
import type { KeyId } from "../../../shared/ids.ts";
import { at } from "../../core/clock.ts";
import type { Caller } from "../../core/operation.ts";

const LIFE_MS = 10 * 60_000;
const TOKEN_BYTES = 32;
/** More than a key needs at once; its oldest go first, and nobody else's. */
export const MOST_OF_A_KEY = 256;

export interface Kept {
  caller: Caller;
  sandbox_id: string;
  terminal_id: string;
  until: number;
}

export class Tokens {
  /** By their hashes, in the order in which they were made. */
  readonly #kept = new Map<string, Kept>();
  /** The hashes of each key's, in the same order. */
  readonly #ofKeys = new Map<KeyId, Set<string>>();

  /** Characters of a token may stand in a WebSocket's subprotocol. */
  make(caller: Caller, sandboxId: string, terminalId: string): { token: string; expires_at: string } {
    this.#sweep();
    const token = `ttk_${randomBytes(TOKEN_BYTES).toString("base64url")}`;
    const until = Date.now() + LIFE_MS;
    const hash = hashOf(token);
    const own = this.#ofKeys.get(caller.key_id) ?? new Set();
    this.#ofKeys.set(caller.key_id, own.add(hash));
    this.#kept.set(hash, { caller, sandbox_id: sandboxId, terminal_id: terminalId, until });
    const [oldest] = own;
    if (own.size > MOST_OF_A_KEY && oldest !== undefined) this.#forget(oldest, caller.key_id);
    return { token, expires_at: at(until) };
  }

  /** Who made the token, and for what; null for one that is none. */
  find(token: string): Kept | null {
    const kept = this.#kept.get(hashOf(token));
    return kept && kept.until > Date.now() ? kept : null;
  }

  /** All have one life, so the first are the oldest. */
  #sweep(): void {
    for (const [hash, { until, caller }] of this.#kept) {
      if (until > Date.now()) return;
      this.#forget(hash, caller.key_id);
    }
  }

  #forget(hash: string, keyId: KeyId): void {
    this.#kept.delete(hash);
    const own = this.#ofKeys.get(keyId);
    own?.delete(hash);
    if (own?.size === 0) this.#ofKeys.delete(keyId);
  }
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
