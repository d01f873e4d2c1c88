/**
 * Daily limit of records per chain; above it, some are only counted (aggregates.ts). A day is one in UTC.
 *
 *     up to the day's records         everything is recorded
 *     above                           reads and refusals are counted
 *     above twice as many             so are the frequent calls of agents: messages, barriers, files, input to commands
 *
 * Calls that create or end something, executions, and changes of permissions are always recorded.
 */
import { operations } from "../../../shared/api/operations.ts";
import { wallMs } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import type { ChainKey } from "./chain/chain-key.ts";
import { lastBefore } from "./days/parts.ts";
import type { AuditEntry } from "./entry.ts";

const DAY_MS = 24 * 3600 * 1000;

/** Events of read-only calls. Attaching to a terminal does not count as a read. */
const READS: ReadonlySet<string> = new Set(
  Object.values(operations).flatMap(({ method, audit }) =>
    method === "GET" && audit !== null && audit !== "exec.terminal_attached" ? [audit] : [],
  ),
);
const FREQUENT = /^(message|barrier|drive)\.|^exec\.(stdin|signal)$/;

export class DailyCap {
  readonly #perDay: number;
  /** Last record of the previous day, by chain. */
  readonly #begins = new Map<ChainKey, { day: number; seq: number }>();

  constructor(perDay: number) {
    this.#perDay = perDay;
  }

  /** Within a transaction: whether the entry is counted instead of recorded; `seq` is the chain's last record. */
  isCounted(queries: Queries, key: ChainKey, seq: number, { event, outcome }: AuditEntry): boolean {
    // The chain has fewer records in total than one day may have.
    if (seq < this.#perDay) return false;
    const today = seq - this.#beginOf(queries, key, seq);
    if (today < this.#perDay) return false;
    if (outcome !== "success" || READS.has(event)) return true;
    return today >= 2 * this.#perDay && FREQUENT.test(event);
  }

  #beginOf(queries: Queries, key: ChainKey, seq: number): number {
    const day = Math.floor(wallMs() / DAY_MS);
    const known = this.#begins.get(key);
    if (known?.day === day) return known.seq;
    const begin = lastBefore(queries, key, seq, new Date(day * DAY_MS).toISOString());
    this.#begins.set(key, { day, seq: begin });
    return begin;
  }
}
