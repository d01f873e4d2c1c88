/**
 * Ends exposed ports without a call: at their expiry, with their sandbox, or with their maker. Deletes the row, closes open connections,
 * and appends an audit record.
 */

import type { KeyId, OrgId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { Deadlines } from "../../core/concurrency/deadlines.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import type { Connections } from "./connections.ts";
import type { PortDeps } from "./deps.ts";
import { allPorts, deleteEnded, deleteLabel, deleteOfSandbox, findLabel, forgetMaker, listPorts } from "./store.ts";
import type { PortRow } from "./table.ts";
import type { Traffic } from "./traffic.ts";

/** In one commit, each with an audit record. */
const ENDED_TOGETHER = 16;
export const MAKER_ENDED = "the access of its maker has ended";

type Held = Pick<PortRow, "label" | "sandbox_id">;

export class Exposures {
  readonly #deps: PortDeps;
  readonly #connections: Connections;
  readonly #traffic: Traffic;
  readonly #expiries = new Deadlines((label) => void this.#expire(label));
  /** The maker of each label. */
  readonly #makerOf = new Map<string, KeyId>();
  /** The ports of each maker, which hold its access together: it may have thousands. */
  readonly #makers = new Map<KeyId, { ports: Map<string, Held>; release: () => void }>();
  /** Watches for the end of sandboxes. */
  readonly #watched = new Map<string, AbortController>();

  constructor(deps: PortDeps, connections: Connections) {
    this.#deps = deps;
    this.#connections = connections;
    this.#traffic = deps.traffic;
  }

  recover(): void {
    for (const row of allPorts(this.#deps.database.queries)) this.keep(row);
  }

  /** Watches for the port's end; a second call changes its expiry and its maker. */
  keep({ label, sandbox_id, expires_at, ends_with, org_id }: PortRow): void {
    this.#expiries.set(label, expires_at);
    if (ends_with !== null && this.#makerOf.get(label) !== ends_with) {
      this.#letGo(label);
      this.#makerOf.set(label, ends_with);
      const maker = this.#makers.get(ends_with) ?? { ports: new Map(), release: this.#holdMaker(org_id, ends_with) };
      this.#makers.set(ends_with, maker);
      maker.ports.set(label, { label, sandbox_id });
    }
    if (this.#watched.has(sandbox_id)) return;
    const watch = new AbortController();
    this.#watched.set(sandbox_id, watch);
    void this.#deps.sandboxes.ended(sandbox_id, watch.signal).then((state) => this.#closeAll(sandbox_id, state));
  }

  /** Drops the state of a port that is no longer exposed. */
  forget({ label, sandbox_id }: Pick<PortRow, "label" | "sandbox_id">, why: string): void {
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
    for (const label of [...this.#makerOf.keys()]) this.#letGo(label);
    for (const watch of this.#watched.values()) watch.abort();
    this.#watched.clear();
  }

  #letGo(label: string): void {
    const key_id = this.#makerOf.get(label);
    this.#makerOf.delete(label);
    if (key_id === undefined) return;
    const maker = this.#makers.get(key_id);
    maker?.ports.delete(label);
    if (maker?.ports.size !== 0) return;
    this.#makers.delete(key_id);
    maker.release();
  }

  #holdMaker(org_id: OrgId, key_id: KeyId): () => void {
    return this.#deps.holdMaker({ org_id, key_id }, () => {
      const ports = [...(this.#makers.get(key_id)?.ports.values() ?? [])];
      void this.#endWithMaker(org_id, key_id, ports);
    });
  }

  async #expire(label: string): Promise<void> {
    // It may have been extended in the meantime, and a timer may fire a moment early.
    const current = findLabel(this.#deps.database.queries, label);
    if (current) return this.#expiries.set(label, current.expires_at);
    await this.#end("port.expired", "it has expired", (queries) => deleted(queries, label));
  }

  /** Within a transaction: closes ports of a sandbox that ended with their maker, to free their numbers. */
  closeEnded(queries: Queries, sandboxId: string): void {
    for (const row of deleteEnded(queries, sandboxId)) append(queries, row, "port.closed", MAKER_ENDED);
  }

  /** Some in each commit: no query finds them any more. */
  async #endWithMaker(org_id: OrgId, key_id: KeyId, ports: readonly Held[]): Promise<void> {
    const pieces = new Pieces(loopTime, ownerOf(org_id), "port.end");
    for (const port of ports) this.#connections.cut(port.label, MAKER_ENDED);
    for (let at = 0; at < ports.length; at += ENDED_TOGETHER) {
      await pieces.turn();
      // Others belong to another key by now.
      const some = ports.slice(at, at + ENDED_TOGETHER).filter(({ label }) => this.#makerOf.get(label) === key_id);
      const removed = await this.#end("port.closed", MAKER_ENDED, (queries) => {
        const rows = some.flatMap(({ label }) => deleted(queries, label));
        forgetMaker(queries, key_id);
        return rows;
      });
      // The row of a port may have been deleted before, to free its number.
      const labels = new Set(removed?.map(({ label }) => label));
      if (removed) for (const port of some) if (!labels.has(port.label)) this.forget(port, MAKER_ENDED);
    }
  }

  #closeAll(sandboxId: string, state: string): Promise<PortRow[] | null> {
    return this.#end("port.closed", `the sandbox is ${state}`, (queries) => deleteOfSandbox(queries, sandboxId));
  }

  /** Null if it failed. */
  async #end(
    event: "port.expired" | "port.closed",
    reason: string,
    remove: (queries: Queries) => PortRow[],
  ): Promise<PortRow[] | null> {
    const { database, log } = this.#deps;
    try {
      const removed = await database.commit((queries) => {
        const rows = remove(queries);
        for (const row of rows) append(queries, row, event, reason);
        return rows;
      });
      for (const row of removed) this.forget(row, reason);
      return removed;
    } catch (error) {
      log.error("failed to unexpose a port", { error: describeError(error) });
      return null;
    }
  }
}

function deleted(queries: Queries, label: string): PortRow[] {
  const row = deleteLabel(queries, label);
  return row ? [row] : [];
}

function append(queries: Queries, row: PortRow, event: "port.expired" | "port.closed", reason: string): void {
  const { org_id, room_uid, agent_id, sandbox_id, port } = row;
  const actor = { type: "system", id: "ports", name: "ports" };
  appendAudit(queries, {
    ...{ event, outcome: "success", at: now(), org_id, room_uid, agent_id, sandbox_id, actor, source: "reconciler" },
    details: { port, reason },
  });
}
