/** Selects the records of each chain that belong to the oldest ended day that is not closed. Runs in a thread. */
import { type Queries, rawQuery } from "../../../db/client.ts";
import type { ChainKey } from "../chain/chain-key.ts";
import { closedUpTo, lastBefore } from "./parts.ts";
import { isRecorded } from "./store.ts";

export interface CutStretch {
  org_key: ChainKey;
  /** Seq before its first record. */
  after: number;
  last: number;
}

export interface Cut {
  /** Name of the closed day's file. */
  name: string;
  stretches: CutStretch[];
}

const DAY_MS = 24 * 3600 * 1000;

/** The day of a moment, such as 2026-11-29. */
export const dayOf = (moment: string): string => moment.slice(0, 10);

/** Start of the following day. */
const endOf = (day: string): string => new Date(Date.parse(`${day}T00:00:00.000Z`) + DAY_MS).toISOString();

interface OpenChain {
  org_key: ChainKey;
  head: number;
  /** Time of its first record that is not in a closed day. */
  at: string;
}

/** Chains with records in the table audit, one step per chain. */
export function* openChains(queries: Queries): Generator<OpenChain | undefined, void> {
  const heads = rawQuery<{ org_key: ChainKey; seq: number }>(queries, "SELECT org_key, seq FROM audit_heads")([]);
  const first = rawQuery<{ at: string }>(
    queries,
    "SELECT at FROM audit WHERE org_key = ? AND seq > ? ORDER BY seq LIMIT 1",
  );
  for (const { org_key, seq } of heads) {
    const [found] = first([org_key, closedUpTo(queries, org_key)]);
    yield found && { org_key, head: seq, at: found.at };
  }
}

/**
 * Of the oldest day; null if none has ended before that moment. Records that came late, with a time before, go with the day after. `taken`:
 * names of files that there are.
 */
export function cutDay(queries: Queries, before: string, taken: ReadonlySet<string>): Cut | null {
  const due = [...openChains(queries)].flatMap((chain) => (chain && chain.at < before ? [chain] : []));
  let day = "";
  for (const { at } of due) if (day === "" || dayOf(at) < day) day = dayOf(at);
  if (day === "") return null;
  const stretches = due.flatMap(({ org_key, head }) => {
    const after = closedUpTo(queries, org_key);
    const last = lastBefore(queries, org_key, head, endOf(day));
    return last > after ? [{ org_key, after, last }] : [];
  });
  return { name: nameOf(queries, day, taken), stretches };
}

/** A clock that was set back makes a day come twice, and a database that was set back makes a file that has no row. */
function nameOf(queries: Queries, day: string, taken: ReadonlySet<string>): string {
  for (let nth = 1; ; nth++) {
    const name = nth === 1 ? `${day}.db` : `${day}-${nth}.db`;
    if (!isRecorded(queries, name) && !taken.has(name)) return name;
  }
}
