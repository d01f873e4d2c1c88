/**
 * Tickets: each opens one resource of a sandbox without an API key, as browsers need, for a short time. Only their hashes are stored, in
 * memory: a restart ends them all.
 */
import { createHash, randomBytes } from "node:crypto";
import type { KeyId } from "../../../shared/ids.ts";
import { at, monotonicMs, wallMs } from "../clock.ts";
import { type Caller, type KeyCall, trialCall } from "./operation.ts";

const LIFE_MS = 10 * 60_000;
const SECRET_BYTES = 32;
/** More than a key needs concurrently; above it, only the key's own oldest tickets are evicted. */
export const MAX_OF_A_KEY = 256;

/** The resource that a ticket opens. */
interface Goal {
  sandbox_id: string;
}

export interface StoredTicket<G extends Goal> {
  caller: Caller;
  goal: G;
  /** In monotonic time. */
  until: number;
}

/** Dependencies of the check whether a ticket is still valid. */
export interface TicketDeps {
  /** Whether a previously valid key is still valid. */
  isCurrentKey(keyId: KeyId): boolean;
  sandboxes: { find(call: KeyCall, params: Record<string, string>): { row: { sandbox_id: string } } };
}

/** Mark in tickets of a host of several, which routes them to it. */
export function ticketMark(hostId: string): string {
  return createHash("sha256").update(`ticket ${hostId}`).digest("base64url").slice(0, MARK_CHARACTERS);
}

const MARK_CHARACTERS = 8;
/** Prefixes of tickets: of a terminal, of a screen with its keyboard, and of a view-only screen. */
export const TICKET_PREFIXES = ["ttk_", "sdt_", "svt_"] as const;
type TicketPrefix = (typeof TICKET_PREFIXES)[number];
/** Pattern of the part after the prefix; used to hide anything that looks like a ticket from unrelated readers. */
export const AFTER_PREFIX = `(?:[\\w-]{${MARK_CHARACTERS}}\\.)?[\\w-]{${Math.ceil((SECRET_BYTES * 4) / 3)}}`;
const MARKED = new RegExp(`^[a-z]+_([\\w-]{${MARK_CHARACTERS}})\\.`);

/** The mark of the host that issued a ticket; null if the ticket has none. */
export const markOf = (token: string): string | null => MARKED.exec(token)?.[1] ?? null;

export class Tickets<G extends Goal> {
  /** The part after the prefix. */
  readonly #mark: string;
  /** Tickets by hash, in the order of their creation. */
  readonly #kept = new Map<string, StoredTicket<G>>();
  /** Hashes of each key's tickets, in the same order. */
  readonly #ofKeys = new Map<KeyId, Set<string>>();

  /** `mark`: set on a host of a cluster. */
  constructor(mark: string | null = null) {
    this.#mark = mark === null ? "" : `${mark}.`;
  }

  /** `prefix`: the kind of ticket, recognizable to people. All characters are valid in a WebSocket's subprotocol, and in a URL. */
  make(prefix: TicketPrefix, caller: Caller, goal: G): { token: string; expires_at: string } {
    this.#sweep();
    const token = prefix + this.#mark + randomBytes(SECRET_BYTES).toString("base64url");
    const until = monotonicMs() + LIFE_MS;
    const hash = hashOf(token);
    const own = this.#ofKeys.get(caller.key_id) ?? new Set();
    this.#ofKeys.set(caller.key_id, own.add(hash));
    this.#kept.set(hash, { caller, goal, until });
    const [oldest] = own;
    if (own.size > MAX_OF_A_KEY && oldest !== undefined) this.#forget(oldest, caller.key_id);
    return { token, expires_at: at(wallMs() + LIFE_MS) };
  }

  /** The ticket's maker and goal; null for an invalid one. */
  find(token: string): StoredTicket<G> | null {
    const kept = this.#kept.get(hashOf(token));
    return kept && kept.until > monotonicMs() ? kept : null;
  }

  /** The same, if its key is valid and the path names its sandbox; the name may have belonged to another sandbox before. */
  open(token: string, params: Record<string, string>, { isCurrentKey, sandboxes }: TicketDeps): StoredTicket<G> | null {
    const kept = this.find(token);
    if (!kept || !isCurrentKey(kept.caller.key_id)) return null;
    try {
      return sandboxes.find(trialCall(kept.caller), params).row.sandbox_id === kept.goal.sandbox_id ? kept : null;
    } catch {
      return null;
    }
  }

  /** All tickets have the same lifetime, so the first are the oldest. */
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
