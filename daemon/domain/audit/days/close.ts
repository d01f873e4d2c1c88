/**
 * Closing of days: records of days that have ended move from the table audit into files of their own.
 *
 *     swept → copied: the file is on disk ⇒ recorded: its records are read from it ⇒ shortened: removed from the table
 *
 * A record is read from exactly one place at any time: only the commit that records the file changes which one. A crash before that leaves
 * a file that the next sweep removes (unrecorded.ts); a crash after it leaves rows that the next run deletes.
 */
import { unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { at, now, wallMs } from "../../../core/clock.ts";
import { AUDIT_DAYS } from "../../../core/config/paths.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import type { Log } from "../../../core/log.ts";
import { loopTime, Pieces } from "../../../core/loop/index.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import type { ChainKey } from "../chain/chain-key.ts";
import { appendPurged, chainHeads } from "../store.ts";
import { type CopiedDay, copyDay } from "./copy.ts";
import { dayOf, openChains } from "./cut.ts";
import { closedUpTo } from "./parts.ts";
import {
  dropUnrecorded,
  filesOf,
  hasUpTo,
  nextNumber,
  purgeStretch,
  recordFile,
  recordRemoved,
  recordStretches,
  shorten,
  stretchesOf,
  wasRemovedBefore,
} from "./store.ts";
import { namesIn, removeBefore, removeSuperfluous } from "./unrecorded.ts";

/** Rows per commit: a few milliseconds of work. */
const ROWS_AT_ONCE = 400;
/** Delay from recording a file as removed to deleting it: earlier reads still use the file, and so does a reverted upgrade. */
const REMOVED_MS = 3_600_000;
/** Fixed cost of a chain in a deleting commit, in rows. */
const CHAIN_ROWS = 10;
/** Chains per purging commit: each gets a record of the purge. */
const CHAINS_AT_ONCE = 50;

export interface DaysDeps {
  database: Database;
  log: Log;
  /** File of the database. */
  file: string;
}

const daysDirectory = (file: string): string => join(dirname(file), AUDIT_DAYS);

/** Closes all days that have ended, one after another, until the signal aborts. Rejects with DiskFailure, and on a full disk. */
export async function closeDays(deps: DaysDeps, signal: AbortSignal): Promise<void> {
  const { database, log, file } = deps;
  const directory = daysDirectory(file);
  await sweep(deps);
  await shortenChains(deps, signal);
  while (!signal.aborted) {
    const before = `${dayOf(at(wallMs()))}T00:00:00.000Z`;
    if (!(await isDue(deps, before))) return;
    const copied = await copyDay({ database: file, directory, before }, signal);
    if (!copied) return;
    await faultPoint("day.copied");
    await record(database, copied, before);
    await faultPoint("day.recorded");
    await shortenChains(deps, signal);
    log.info("a day of the audit was closed", { file: copied.name, size_bytes: copied.size_bytes });
  }
}

async function isDue({ database }: DaysDeps, before: string): Promise<boolean> {
  const pieces = new Pieces(loopTime, "host", "audit.days");
  for (const chain of openChains(database.queries)) {
    if (chain && chain.at < before) return true;
    const turn = pieces.next();
    if (turn) await turn;
  }
  return false;
}

async function record(database: Database, { stretches, ...copied }: CopiedDay, before: string): Promise<void> {
  const number = nextNumber(database.queries);
  for (let from = 0; from < stretches.length; from += ROWS_AT_ONCE) {
    const some = stretches.slice(from, from + ROWS_AT_ONCE).map((stretch) => ({ ...stretch, file: number }));
    await database.commit((queries) => recordStretches(queries, some));
  }
  await faultPoint("day.noted");
  let last_at = "";
  // Timestamps from a clock that was ahead must not retain the day, and all later days, beyond their time.
  for (const stretch of stretches) if (stretch.last_at > last_at && stretch.last_at < before) last_at = stretch.last_at;
  last_at ||= before;
  await database.commit((queries) => recordFile(queries, { number, last_at, ...copied }));
}

/** Deletes records from the table that closed days contain. */
async function shortenChains({ database }: DaysDeps, signal: AbortSignal): Promise<void> {
  const pieces = new Pieces(loopTime, "host", "audit.days");
  const due: { chain: ChainKey; upTo: number }[] = [];
  for (const chain of chainHeads(database.queries).keys()) {
    const upTo = closedUpTo(database.queries, chain);
    if (hasUpTo(database.queries, chain, upTo)) due.push({ chain, upTo });
    const turn = pieces.next();
    if (turn) await turn;
  }
  for (let at = 0; at < due.length && !signal.aborted; ) {
    const from = at;
    at = await database.commit((queries) => shortenSome(queries, due, from), false);
    await faultPoint("day.shortened");
  }
}

/** Deletes at most the rows of one commit; returns the index of the first chain with more. */
function shortenSome(queries: Queries, due: readonly { chain: ChainKey; upTo: number }[], from: number): number {
  let left = ROWS_AT_ONCE;
  for (let at = from; at < due.length; at++) {
    const { chain, upTo } = due[at] as (typeof due)[number];
    const deleted = shorten(queries, chain, upTo, left);
    if (deleted === left) return at;
    // Each chain has a fixed cost, however few rows it has.
    left = Math.max(1, left - deleted - CHAIN_ROWS);
    if (left === 1) return at + 1;
  }
  return due.length;
}

/** Removes leftovers of copies, files that were recorded as removed at least `REMOVED_MS` ago, and superfluous files without a row. */
async function sweep({ database, file, log }: DaysDeps): Promise<void> {
  const { queries } = database;
  while ((await database.commit((within) => dropUnrecorded(within, ROWS_AT_ONCE))) === ROWS_AT_ONCE);
  const directory = daysDirectory(file);
  for (const name of await namesIn(directory)) {
    const isLeft = name.endsWith(".db.part") || wasRemovedBefore(queries, name, at(wallMs() - REMOVED_MS));
    if (isLeft) await unlink(join(directory, name));
  }
  const files = await removeSuperfluous(queries, directory);
  if (files.length > 0) log.warn("the database lacks records of days that are on disk", { directory, files });
}

/** Purges whole days of which all records are from before a moment, the oldest first, and records that their files are removed. */
export async function purgeDays({ database, log, file }: DaysDeps, before: string): Promise<void> {
  await removeBefore(database.queries, daysDirectory(file), before);
  for (const { number, name, last_at, removed_at } of filesOf(database.queries)) {
    if (removed_at !== null) continue;
    if (last_at >= before) return;
    while ((await database.commit((queries) => purgeSome(queries, number))) === CHAINS_AT_ONCE);
    await faultPoint("day.purged");
    await database.commit((queries) => recordRemoved(queries, number, now()));
    await faultPoint("day.removed");
    log.info("a day of the audit was purged", { file: name });
  }
}

function purgeSome(queries: Queries, number: number): number {
  const stretches = stretchesOf(queries, number, CHAINS_AT_ONCE);
  for (const stretch of stretches) {
    const { org_key, first_seq, last_seq: seq, last_hash: hash } = stretch;
    purgeStretch(queries, stretch);
    appendPurged(queries, org_key, { seq, hash }, seq - first_seq + 1);
  }
  return stretches.length;
}
