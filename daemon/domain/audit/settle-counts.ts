/** Owns recording what was only counted: some minutes' counts are one record each. */
import type { Log } from "../../core/log.ts";
import { repeat } from "../../core/repeat.ts";
import { describeError } from "../../core/service-error.ts";
import type { Database } from "../../db/transact.ts";
import { countedChains, takeCounts } from "./counts.ts";
import { chainAudits } from "./store.ts";

/** Records what has been counted, also by a daemon before this one, now and again and again; what is returned ends that. */
export function keepSettling(database: Database, log: Log, everyMs: number): () => void {
  return repeat(everyMs, async () => {
    try {
      await settleCounts(database);
    } catch (error) {
      log.error("counted calls not recorded", { error: describeError(error) });
    }
  });
}

export async function settleCounts(database: Database): Promise<void> {
  for (const key of countedChains(database.queries)) {
    await database.commit((queries) => chainAudits(queries, takeCounts(queries, key)), false);
  }
}
