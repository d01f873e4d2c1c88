/**
 * The offset between this host's clock and the clock of the shared database. Leases use the database's clock; every other expiry, also of
 * things that another host has made, uses the host's own.
 */

import { wallMs } from "../core/clock.ts";
import type { Run } from "./connections.ts";

/** The database's time at the start of the transaction, in milliseconds since 1970. */
export const DATABASE_MS = "(extract(epoch FROM now()) * 1000)::float8";

/** Lower bound of the host clock's lead: the database read its own clock at some moment in between. Negative: behind. */
export function aheadMs({ before, after }: { before: number; after: number }, database: number): number {
  if (database < before) return before - database;
  return Math.min(0, after - database);
}

/** Measured by a transaction that starts now. */
export async function askAheadMs(
  transaction: <T>(work: (run: Run) => Promise<T>, deadlineMs: number) => Promise<T>,
  deadlineMs: number,
): Promise<number> {
  const before = wallMs();
  const { rows } = await transaction((run) => run(`SELECT ${DATABASE_MS} AS ms`), deadlineMs);
  return aheadMs({ before, after: wallMs() }, Number(rows[0]?.ms));
}
