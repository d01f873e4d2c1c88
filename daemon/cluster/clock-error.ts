/**
 * Owns how far this host's clock is from that of the database that hosts share. Hosts are told to run by the database's; everything else that
 * ends at a time, also what another host has made, ends by their own.
 */

import { wallMs } from "../core/clock.ts";
import type { Run } from "./connections.ts";

/** The database's clock is that of the beginning of the transaction, in milliseconds since 1970. */
export const DATABASE_MS = "(extract(epoch FROM now()) * 1000)::float8";

/** By how much the host's clock is ahead, at least: the database looked at its own at some moment in between. Negative: behind. */
export function aheadMs({ before, after }: { before: number; after: number }, database: number): number {
  if (database < before) return before - database;
  return Math.min(0, after - database);
}

/** Of a transaction that begins now. */
export async function askAheadMs(
  transaction: <T>(work: (run: Run) => Promise<T>, deadlineMs: number) => Promise<T>,
  deadlineMs: number,
): Promise<number> {
  const before = wallMs();
  const { rows } = await transaction((run) => run(`SELECT ${DATABASE_MS} AS ms`), deadlineMs);
  return aheadMs({ before, after: wallMs() }, Number(rows[0]?.ms));
}
