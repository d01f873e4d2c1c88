/**
 * Owns the tokens by which a terminal is attached to without an API key, as browsers do: each opens one terminal, for a
 * short time. Only their hashes are kept, and only in memory: a restart ends them all.
 */
import { createHash, randomBytes } from "node:crypto";
import { at } from "../core/clock.ts";
import type { Caller } from "../core/operation.ts";

const LIFE_MS = 10 * 60_000;
const TOKEN_BYTES = 32;
/** More than anyone needs at once; the oldest go first. */
const MOST_KEPT = 10_000;

interface Kept {
  caller: Caller;
  sandbox_id: string;
  terminal_id: string;
  until: number;
}

export class Tokens {
  readonly #kept = new Map<string, Kept>();

  /** Characters of a token may stand in a WebSocket's subprotocol. */
  make(caller: Caller, sandboxId: string, terminalId: string): { token: string; expires_at: string } {
    this.#sweep();
    const token = `ttk_${randomBytes(TOKEN_BYTES).toString("base64url")}`;
    const until = Date.now() + LIFE_MS;
    this.#kept.set(hashOf(token), { caller, sandbox_id: sandboxId, terminal_id: terminalId, until });
    return { token, expires_at: at(until) };
  }

  /** Who made the token, and for what; null for one that is none. */
  find(token: string): Kept | null {
    const kept = this.#kept.get(hashOf(token));
    return kept && kept.until > Date.now() ? kept : null;
  }

  /** All have one life, so the first are the oldest. */
  #sweep(): void {
    for (const [hash, { until }] of this.#kept) {
      if (until > Date.now() && this.#kept.size < MOST_KEPT) return;
      this.#kept.delete(hash);
    }
  }
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}
