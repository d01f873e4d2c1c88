/**
 * Last use of keys: noted in memory at each call, and written for all keys together. A crash loses the latest. If several hosts share the
 * keys, a use is written at most once an hour per key, because every host has to apply it.
 */
import type { KeyId } from "../../../shared/ids.ts";
import { at, startTimer, stopTimer, wallMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { OrgChanges } from "./org-changes.ts";
import type { KeyRow } from "./table.ts";

const TOGETHER_MS = 15_000;
/** Keys of one commit. */
const TOGETHER = 200;
const SHARED_MS = 3_600_000;

export class LastUsed {
  readonly #changes: OrgChanges;
  readonly #log: Log;
  /** Minimum age of the stored use before a newer one is written. */
  readonly #apartMs: number;
  #noted = new Map<KeyId, number>();
  #writing = new Map<KeyId, number>();
  #timer: Timer | null = null;

  constructor(changes: OrgChanges, log: Log, { isShared }: { isShared: boolean }) {
    this.#changes = changes;
    this.#log = log;
    this.#apartMs = isShared ? SHARED_MS : 0;
  }

  /** `last_used_at` is the stored use. */
  note({ key_id, last_used_at }: Pick<KeyRow, "key_id" | "last_used_at">): void {
    const usedAt = wallMs();
    if (this.#apartMs > 0 && last_used_at !== null && usedAt - Date.parse(last_used_at) < this.#apartMs) return;
    this.#noted.set(key_id, usedAt);
    this.#timer ??= startTimer(() => void this.settle(), TOGETHER_MS).unref();
  }

  /** The key with its last use, also if that is not written yet. */
  withUse(row: KeyRow): KeyRow {
    const usedAt = this.#noted.get(row.key_id) ?? this.#writing.get(row.key_id);
    return usedAt === undefined ? row : { ...row, last_used_at: at(usedAt) };
  }

  /** Writes the noted uses. Never rejects. */
  async settle(): Promise<void> {
    stopTimer(this.#timer);
    this.#timer = null;
    const pending = this.#noted;
    if (pending.size === 0) return;
    this.#noted = new Map();
    this.#writing = pending;
    const uses = [...pending].map(([key_id, usedAt]) => ({
      ...{ key_id, last_used_at: at(usedAt) },
      unless_after: at(usedAt - this.#apartMs),
    }));
    try {
      for (let from = 0; from < uses.length; from += TOGETHER)
        await this.#changes.noteUses(uses.slice(from, from + TOGETHER));
    } catch (error) {
      this.#log.error("failed to write the last use of keys", { error: String(error) });
    }
  }
}
