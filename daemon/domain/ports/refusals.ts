/** Audit records of invalid port tokens: the first immediately, later ones counted together per minute. */

import { now, startTimer, stopTimer } from "../../core/clock.ts";
import { describeError } from "../../core/service-error.ts";
import { appendAudit } from "../audit/index.ts";
import type { PortDeps } from "./deps.ts";
import type { PortRow } from "./table.ts";

const TOGETHER_MS = 60_000;

interface CountedRefusal {
  row: PortRow;
  ip: string | null;
  count: number;
  timer: Timer;
}

export class Refusals {
  readonly #deps: Pick<PortDeps, "database" | "log">;
  /** By label, at most one per port. */
  readonly #counted = new Map<string, CountedRefusal>();

  constructor(deps: Pick<PortDeps, "database" | "log">) {
    this.#deps = deps;
  }

  note(row: PortRow, ip: string | null): void {
    const entry = this.#counted.get(row.label);
    if (entry) {
      entry.count++;
      entry.ip = ip;
      return;
    }
    const timer = startTimer(() => this.#settle(row.label), TOGETHER_MS);
    timer.unref();
    this.#counted.set(row.label, { row, ip, count: 0, timer });
    this.#record(row, ip, 1);
  }

  /** Records the pending counts. */
  stop(): void {
    for (const label of [...this.#counted.keys()]) this.#settle(label);
  }

  #settle(label: string): void {
    const entry = this.#counted.get(label);
    if (!entry) return;
    stopTimer(entry.timer);
    this.#counted.delete(label);
    if (entry.count > 0) this.#record(entry.row, entry.ip, entry.count);
  }

  #record({ org_id, room_uid, agent_id, sandbox_id, port }: PortRow, ip: string | null, count: number): void {
    const { database, log } = this.#deps;
    const written = database.commit(
      (queries) =>
        appendAudit(queries, {
          event: "port.refused",
          outcome: "denied",
          at: now(),
          ...{ org_id, room_uid, agent_id, sandbox_id, ip },
          actor: { type: "unknown", id: "", name: "" },
          source: "rest",
          status: 401,
          error_code: "invalid_api_key",
          details: { port, count },
        }),
      false,
    );
    written.catch((error: unknown) => log.error("failed to write an audit record", { error: describeError(error) }));
  }
}
