/** Periodic recording of counted calls: the counts of some minutes become one record each. */

import { repeat } from "../../core/concurrency/repeat.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { Database } from "../../db/transact.ts";
import { aggregatedChains, takeAggregates } from "./aggregates.ts";
import { chainAudits } from "./store.ts";

/** Records the counts, including those of an earlier daemon, now and periodically. Returns a function that stops it. */
export function startFlushing(database: Database, log: Log, everyMs: number): () => void {
  return repeat(everyMs, async () => {
    try {
      await flushAggregates(database);
    } catch (error) {
      log.error("failed to record aggregated calls", { error: describeError(error) });
    }
  });
}

export async function flushAggregates(database: Database): Promise<void> {
  for (const key of aggregatedChains(database.queries)) {
    await database.commit((queries) => chainAudits(queries, takeAggregates(queries, key)), false);
  }
}
