/**
 * Files of days without a row in the database: a crash between the copy and its row leaves one, and a database that was set back does not
 * know the later ones. A file is superfluous if the database has its records, or has purged them. Others may be the only copy of their
 * records: they stay until their retention is over.
 */
import { readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { loopTime, Pieces } from "../../../core/loop/index.ts";
import { inPieces, type Steps } from "../../../core/loop/steps.ts";
import { errnoOf } from "../../../core/service-error.ts";
import { preparedBy, type Queries, rawQuery } from "../../../db/client.ts";
import { isLost } from "../../../db/closed-files.ts";
import type { ChainKey } from "../chain/chain-key.ts";
import type { Head } from "../chain/hash-chain.ts";
import { chainStart, hashAt } from "../rows.ts";
import { dayOf } from "./cut.ts";
import { closedDay } from "./parts.ts";
import { isRecorded } from "./store.ts";

const DAY_FILE = /^\d{4}-\d\d-\d\d(?:-\d+)?\.db$/;

/** Names of all files of a directory; none if it does not exist. */
export async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

const unrecordedIn = async (queries: Queries, directory: string): Promise<string[]> =>
  (await namesIn(directory)).filter((name) => DAY_FILE.test(name) && !isRecorded(queries, name));

/** Removes superfluous files; returns the names of the others. */
export async function removeSuperfluous(queries: Queries, directory: string): Promise<string[]> {
  const kept: string[] = [];
  for (const name of await unrecordedIn(queries, directory)) {
    const isKnown = await inPieces(hasRecordsOf(queries, name), new Pieces(loopTime, "host", "audit.days"));
    if (isKnown) await unlink(join(directory, name));
    else kept.push(name);
  }
  return kept;
}

/** Removes files of days before the day of a moment. */
export async function removeBefore(queries: Queries, directory: string, moment: string): Promise<void> {
  for (const name of await unrecordedIn(queries, directory))
    if (dayOf(name) < dayOf(moment)) await unlink(join(directory, name));
}

const statementsOf = preparedBy((day: Queries) => ({
  first: rawQuery<{ org_key: ChainKey }>(day, "SELECT org_key FROM audit ORDER BY org_key LIMIT 1"),
  next: rawQuery<{ org_key: ChainKey }>(day, "SELECT org_key FROM audit WHERE org_key > ? ORDER BY org_key LIMIT 1"),
  last: rawQuery<Head>(day, "SELECT seq, hash FROM audit WHERE org_key = ? ORDER BY seq DESC LIMIT 1"),
}));

/** Whether the database has, or has purged, the records of a file. The last of each chain decides, since its hash covers the earlier ones. */
function* hasRecordsOf(queries: Queries, name: string): Steps<boolean> {
  try {
    for (let after: ChainKey | null = null; ; ) {
      const { first, next, last } = statementsOf(closedDay(queries, name));
      const chain: { org_key: ChainKey } | undefined = (after === null ? first([]) : next([after]))[0];
      if (!chain) return true;
      const org_key: ChainKey = chain.org_key;
      const [head] = last([org_key]);
      const purged = chainStart(queries, org_key)?.seq ?? 0;
      if (head && head.seq > purged && hashAt(queries, org_key, head.seq) !== head.hash) return false;
      after = org_key;
      yield;
    }
  } catch (error) {
    if (!isLost(error)) throw error;
    return false;
  }
}
