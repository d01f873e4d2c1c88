/**
 * Owns tickets: each opens one thing of a sandbox without an API key, as browsers do, for a short time. Only their hashes are kept, and
 * only in memory: a restart ends them all.
 */
import { createHash, randomBytes } from "node:crypto";
import type { KeyId } from "../../shared/ids.ts";
import { at, monotonicMs, wallMs } from "./clock.ts";
import { type Caller, type KeyCall, trialCall } from "./operation.ts";

const LIFE_MS = 10 * 60_000;
const SECRET_BYTES = 32;
/** More than a key needs at once; its oldest go first, and nobody else's. */
export const MOST_OF_A_KEY = 256;

/** What a ticket opens. */
interface Goal {
  sandbox_id: string;
}

export interface Kept<G extends Goal> {
  caller: Caller;
  goal: G;
  /** In monotonic time. */
  until: number;
}

/** What tells whether a ticket is still good. */
export interface TicketDeps {
  /** Whether a key that was good is so still. */
  isCurrentKey(keyId: KeyId): boolean;
  sandboxes: { find(call: KeyCall, params: Record<string, string>): { row: { sandbox_id: string } } };
}

/** Stands in tickets of a host that is one of several, and leads to it. */
export function ticketMark(hostId: string): string {
  return createHash("sha256").update(`ticket ${hostId}`).digest("base64url").slice(0, MARK_CHARACTERS);
}

const MARK_CHARACTERS = 8;
/** How tickets begin: of a terminal, of a screen with its keyboard, and of one that is only looked at. */
export const TICKET_PREFIXES = ["ttk_", "sdt_", "svt_"] as const;
type TicketPrefix = (typeof TICKET_PREFIXES)[number];
/** What follows that, as a pattern; what looks as a ticket is kept from whom it does not concern. */
export const AFTER_PREFIX = `(?:[\\w-]{${MARK_CHARACTERS}}\\.)?[\\w-]{${Math.ceil((SECRET_BYTES * 4) / 3)}}`;
const MARKED = new RegExp(`^[a-z]+_([\\w-]{${MARK_CHARACTERS}})\\.`);

/** The mark of the host that has made a ticket; null: it has none. */
export const markOf = (token: string): string | null => MARKED.exec(token)?.[1] ?? null;

export class Tickets<G extends Goal> {
  /** What follows the prefix. */
  readonly #mark: string;
  /** By their hashes, in the order in which they were made. */
  readonly #kept = new Map<string, Kept<G>>();
  /** The hashes of each key's, in the same order. */
  readonly #ofKeys = new Map<KeyId, Set<string>>();

  /** `mark` of a host that is one of several. */
  constructor(mark: string | null = null) {
    this.#mark = mark === null ? "" : `${mark}.`;
  }

  /** `prefix`: how it begins, by which people tell it from others. All its characters may stand in a WebSocket's subprotocol, and in a URL. */
  make(prefix: TicketPrefix, caller: Caller, goal: G): { token: string; expires_at: string } {
    this.#sweep();
    const token = prefix + this.#mark + randomBytes(SECRET_BYTES).toString("base64url");
    const until = monotonicMs() + LIFE_MS;
    const hash = hashOf(token);
    const own = this.#ofKeys.get(caller.key_id) ?? new Set();
    this.#ofKeys.set(caller.key_id, own.add(hash));
    this.#kept.set(hash, { caller, goal, until });
    const [oldest] = own;
    if (own.size > MOST_OF_A_KEY && oldest !== undefined) this.#forget(oldest, caller.key_id);
    return { token, expires_at: at(wallMs() + LIFE_MS) };
  }

  /** Who made the ticket, and for what; null for one that is none. */
  find(token: string): Kept<G> | null {
    const kept = this.#kept.get(hashOf(token));
    return kept && kept.until > monotonicMs() ? kept : null;
  }

  /** The same, while its key is good and its sandbox the one that the path names, which may have had another's name before. */
  open(token: string, params: Record<string, string>, { isCurrentKey, sandboxes }: TicketDeps): Kept<G> | null {
    const kept = this.find(token);
    if (!kept || !isCurrentKey(kept.caller.key_id)) return null;
    try {
      return sandboxes.find(trialCall(kept.caller), params).row.sandbox_id === kept.goal.sandbox_id ? kept : null;
    } catch {
      return null;
    }
  }

  /** All have one life, so the first are the oldest. */
  #sweep(): void {
    for (const [hash, { until, caller }] of this.#kept) {
      if (until > monotonicMs()) return;
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
