/** Reads organizations' chains for subscribers that forward the records: from a position on, and waits there for new records. */
import type { AuditRecord } from "../../../../shared/api/audit.ts";
import type { Notifier } from "../../../core/concurrency/notifier.ts";
import { ownerOf } from "../../../core/loop/index.ts";
import type { Queries } from "../../../db/client.ts";
import type { Reads } from "../../../db/readers/pool.ts";
import { locateRecord } from "../reading/locate.ts";
import { chainRecords, chainStart, toRecord } from "../rows.ts";
import { chainHead } from "./chain-head.ts";
import { chainKey } from "./chain-key.ts";
import { CHAIN_TOPIC, topicGroup } from "./chain-notifier.ts";
import { walkOf } from "./time-slices.ts";

/** Records per step: about a millisecond of work, after which the event loop serves others. */
const AT_ONCE = 100;

export class Chains {
  readonly #queries: Queries;
  readonly #reads: Reads;
  readonly #bells: Notifier;

  constructor(queries: Queries, reads: Reads, bells: Notifier) {
    this.#queries = queries;
    this.#reads = reads;
    this.#bells = bells;
  }

  /** Seq of the last record; 0 if the chain is empty. */
  head(orgId: string): number {
    return chainHead(this.#queries, chainKey(orgId))?.seq ?? 0;
  }

  /** The seq of the last record that is not younger than `moment`; if that was purged, of the last purged record. */
  upTo(orgId: string, moment: string): number {
    const key = chainKey(orgId);
    let [low, high] = [chainStart(this.#queries, key)?.seq ?? 0, this.head(orgId)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const [row] = chainRecords(this.#queries, key, middle - 1, 1);
      if (row && row.at <= moment) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Null: it was purged. */
  at(orgId: string, seq: number): AuditRecord | null {
    const [row] = chainRecords(this.#queries, chainKey(orgId), seq - 1, 1);
    return row?.seq === seq ? toRecord(row) : null;
  }

  /** The record of this id. Null if the chain does not have it or the caller has `left`. */
  async find(orgId: string, audit_id: string, left: AbortSignal): Promise<AuditRecord | null> {
    return await locateRecord(this.#reads, { org_id: orgId, room_uids: null, agent_id: null }, { audit_id }, left);
  }

  /**
   * Some records after a position, in order, as soon as there are any. When the daemon stops, throws the error that all waits throw then.
   */
  async after(orgId: string, seq: number, signal: AbortSignal): Promise<AuditRecord[]> {
    const key = chainKey(orgId);
    await walkOf(key).turn();
    const wait = { key: CHAIN_TOPIC, owner: ownerOf(orgId), deadlineMs: Number.POSITIVE_INFINITY, signal };
    const rows = await this.#bells.wait(topicGroup(key), wait, () => {
      const found = chainRecords(this.#queries, key, seq, AT_ONCE);
      return found.length > 0 ? found : null;
    });
    return rows?.map(toRecord) ?? [];
  }
}
