/**
 * Owns when a port's exposure ends without a call: at its time, with its sandbox, or with the key that exposed it. The row goes, what is open through it is
 * cut, and the audit says so.
 */

import { now } from "../../core/clock.ts";
import { Deadlines } from "../../core/deadlines.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import type { Connections } from "./connections.ts";
import type { PortDeps } from "./deps.ts";
import { allPorts, deleteLabel, deleteOfSandbox, findLabel, listPorts } from "./store.ts";
import type { PortRow } from "./table.ts";
import type { Traffic } from "./traffic.ts";

export class Exposures {
  readonly #deps: PortDeps;
  readonly #connections: Connections;
  readonly #traffic: Traffic;
  readonly #expiries = new Deadlines((label) => void this.#expire(label));
  /** By label, what lets go of the key that it ends with. */
  readonly #keys = new Map<string, () => void>();
  /** The sandboxes whose end is waited for. */
  readonly #watched = new Map<string, AbortController>();

  constructor(deps: PortDeps, connections: Connections, traffic: Traffic) {
    this.#deps = deps;
    this.#connections = connections;
    this.#traffic = traffic;
  }

  recover(): void {
    for (const row of allPorts(this.#deps.database.queries)) this.keep(row);
  }

  /** Sees to its end; again is nothing but its time, which may be another. */
  keep({ label, sandbox_id, expires_at, ends_with }: PortRow): void {
    this.#expiries.set(label, expires_at);
    if (ends_with !== null && !this.#keys.has(label)) {
      this.#keys.set(
        label,
        this.#deps.holdLine(ends_with, () => void this.#endWithKey(label)),
      );
    }
    if (this.#watched.has(sandbox_id)) return;
    const watch = new AbortController();
    this.#watched.set(sandbox_id, watch);
    void this.#deps.sandboxes.ended(sandbox_id, watch.signal).then((state) => this.#closeAll(sandbox_id, state));
  }

  /** It is not exposed any more. */
  forget({ label, sandbox_id }: PortRow, why: string): void {
    this.#expiries.set(label, null);
    this.#letGo(label);
    this.#connections.cut(label, why);
    this.#traffic.forget(label);
    if (listPorts(this.#deps.database.queries, sandbox_id).length > 0) return;
    this.#watched.get(sandbox_id)?.abort();
    this.#watched.delete(sandbox_id);
  }

  stop(): void {
    this.#expiries.clear();
    for (const label of [...this.#keys.keys()]) this.#letGo(label);
    for (const watch of this.#watched.values()) watch.abort();
    this.#watched.clear();
  }

  #letGo(label: string): void {
    this.#keys.get(label)?.();
    this.#keys.delete(label);
  }

  async #expire(label: string): Promise<void> {
    // Its time may have been moved on just now, and a timer may be a moment early.
    const current = findLabel(this.#deps.database.queries, label);
    if (current) return this.#expiries.set(label, current.expires_at);
    await this.#end("port.expired", "it has expired", (queries) => deleted(queries, label));
  }

  #endWithKey(label: string): Promise<void> {
    return this.#end("port.closed", "the key that exposed it has ended", (queries) => deleted(queries, label));
  }

  #closeAll(sandboxId: string, state: string): Promise<void> {
    return this.#end("port.closed", `the sandbox is ${state}`, (queries) => deleteOfSandbox(queries, sandboxId));
  }

  async #end(
    event: "port.expired" | "port.closed",
    reason: string,
    remove: (queries: Queries) => PortRow[],
  ): Promise<void> {
    const { database, log } = this.#deps;
    try {
      const gone = await database.commit((queries) => {
        const rows = remove(queries);
        for (const row of rows) appendAudit(queries, { ...factsOf(row), event, details: { port: row.port, reason } });
        return rows;
      });
      for (const row of gone) this.forget(row, reason);
    } catch (error) {
      log.error("port not unexposed", { error: describeError(error) });
    }
  }
}

function deleted(queries: Queries, label: string): PortRow[] {
  const row = deleteLabel(queries, label);
  return row ? [row] : [];
}

function factsOf({ org_id, room_uid, agent_id, sandbox_id }: PortRow) {
  const actor = { type: "system", id: "ports", name: "ports" };
  return {
    ...{ org_id, room_uid, agent_id, sandbox_id, actor },
    outcome: "success" as const,
    at: now(),
    source: "reconciler" as const,
  };
}
