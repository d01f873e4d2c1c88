/**
 * Removal of API keys 30 days after their end: an organization makes up to 20,000 a day, and each host has a copy of all. Records of the audit have
 * their names. A key stays while a key of its line is good or ended less long ago, and while keys are there that it has made: the things made by these
 * lines end with them. It leaves a tombstone on the hosts of a service (cluster/tombstones.ts).
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
/** Keys that are examined in one turn, and removed by one change. */
const MAX_KEYS = 200;

type Changes = Pick<OrgChanges, "dropKeys">;

/** Removes the keys that may go, page by page. */
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

/** Returns the function that stops it. */
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
