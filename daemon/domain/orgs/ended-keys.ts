/**
 * Removal of API keys 30 days after their end: an organization makes up to 20,000 a day, and each host has a copy of all. Audit records
 * contain their names. A key is retained while its line has a key that is valid or ended later, and while keys exist that it has made: the
 * resources made by these lines end with them. In a cluster it leaves a tombstone on the hosts (cluster/tombstones.ts).
 */
import { at, wallMs } from "../../core/clock.ts";
import { every } from "../../core/concurrency/repeat.ts";
import type { Log } from "../../core/log.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { OrgChanges } from "./org-changes.ts";
import { endedKeysAfter, FIRST_END } from "./store.ts";

const KEPT_MS = 30 * 86_400_000;
const LOOK_MS = 3_600_000;
/** Keys examined in one turn, and removed by one change. */
const MAX_KEYS = 200;

type Changes = Pick<OrgChanges, "dropKeys">;

/** Removes the keys that are no longer needed, page by page. */
export async function dropEndedKeys(queries: Queries, changes: Changes): Promise<void> {
  const before = at(wallMs() - KEPT_MS);
  const pieces = new Pieces(loopTime, "host", "orgs.ended_keys");
  let after = FIRST_END;
  for (;;) {
    await pieces.turn();
    const found = endedKeysAfter(queries, after, before, MAX_KEYS);
    const last = found.at(-1);
    if (last === undefined) return;
    after = last;
    const ids = found.flatMap(({ key_id, is_free }) => (is_free ? [key_id] : []));
    if (ids.length > 0) await changes.dropKeys(ids, before);
  }
}

/** Starts the periodic removal; returns a function that stops it. */
export function startDropping(queries: Queries, changes: Changes, log: Log): () => void {
  let isDropping = false;
  const drop = async () => {
    if (isDropping) return;
    isDropping = true;
    await dropEndedKeys(queries, changes).catch((error: unknown) =>
      log.warn("failed to remove ended keys", { error: describeError(error) }),
    );
    isDropping = false;
  };
  return every(
    LOOK_MS,
    () => void drop(),
    () => {},
  );
}
