/** When keys were last used: noted in memory with each call, written for all keys together. A crash loses the newest. */
import type { KeyId } from "../../../shared/ids.ts";
import { at, startTimer, stopTimer, wallMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { OrgChanges } from "./org-changes.ts";
import type { KeyRow } from "./table.ts";

const TOGETHER_MS = 15_000;

export class LastUsed {
  readonly #changes: OrgChanges;
  readonly #log: Log;
  #noted = new Map<KeyId, number>();
  #writing = new Map<KeyId, number>();
  #timer: Timer | null = null;

  constructor(changes: OrgChanges, log: Log) {
    this.#changes = changes;
    this.#log = log;
  }

  note(keyId: KeyId): void {
    this.#noted.set(keyId, wallMs());
    this.#timer ??= startTimer(() => void this.settle(), TOGETHER_MS).unref();
  }

  /** The key with what is not written yet. */
  withUse(row: KeyRow): KeyRow {
    const usedAt = this.#noted.get(row.key_id) ?? this.#writing.get(row.key_id);
    return usedAt === undefined ? row : { ...row, last_used_at: at(usedAt) };
  }

  /** Writes what has been noted. Never rejects. */
  async settle(): Promise<void> {
    stopTimer(this.#timer);
    this.#timer = null;
    const noted = this.#noted;
    if (noted.size === 0) return;
    this.#noted = new Map();
    this.#writing = noted;
    const uses = [...noted].map(([key_id, usedAt]) => ({ key_id, last_used_at: at(usedAt) }));
    await this.#changes
      .noteUses(uses)
      .catch((error: unknown) => this.#log.error("last use of keys not written", { error: String(error) }));
  }
}
