/**
 * Audit of calls above their key's rate. A client can send any number of them, so they are counted per key, and the counts recorded every
 * minute.
 */
import type { Source } from "../../../shared/api/audit.ts";
import type { Caller } from "../../core/call/operation.ts";
import { now, startTimer, stopTimer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit } from "../../domain/audit/index.ts";

const TOGETHER_MS = 60_000;

export interface RefusedCall {
  caller: Pick<Caller, "kind" | "org_id" | "key_id" | "name">;
  source: Source;
  request_id: string;
  ip: string | null;
}

export class RateRefusals {
  readonly #database: Database;
  readonly #log: Log;
  readonly #counted = new Map<string, { last: RefusedCall; count: number }>();
  #timer: Timer | null = null;

  constructor(database: Database, log: Log) {
    this.#database = database;
    this.#log = log;
  }

  note({ caller, source, request_id, ip }: RefusedCall): void {
    const { count = 0 } = this.#counted.get(caller.key_id) ?? {};
    this.#counted.set(caller.key_id, { last: { caller, source, request_id, ip }, count: count + 1 });
    this.#timer ??= startTimer(() => this.settle(), TOGETHER_MS).unref();
  }

  /** Writes the counts to the audit. */
  settle(): void {
    stopTimer(this.#timer);
    this.#timer = null;
    const entries = [...this.#counted.values()];
    this.#counted.clear();
    if (entries.length === 0) return;
    const written = this.#database.commit((queries) => {
      for (const { last, count } of entries) {
        const { caller, ...from } = last;
        appendAudit(queries, {
          ...from,
          event: "quota.rate_limited",
          outcome: "denied",
          at: now(),
          org_id: caller.org_id || null,
          actor: { type: caller.kind ?? "key", id: caller.key_id, name: caller.name },
          status: 429,
          error_code: "rate_limited",
          details: { count },
        });
      }
    }, false);
    written.catch((error: unknown) => this.#log.error("failed to write an audit record", { error: String(error) }));
  }
}
