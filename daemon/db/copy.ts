/**
 * Copies of the database: a hold on the log while file and log are copied, the verification of a copy, and its migration before it replaces
 * the database.
 */
import { existsSync, statSync } from "node:fs";
import { openConnection, type Queries, quickCheck, rawQuery } from "./client.ts";
import { lengthOf } from "./log-frames.ts";
import { latestVersion, migrate, whyUnknown } from "./migrate.ts";
import { type Database, makeDatabase } from "./transact.ts";

export interface HeldLog {
  /** Current length of the log, including the newest commit. */
  bytes(): number;
  release(): void;
}

/**
 * Keeps the log from restarting, so that the file and after it the log can be copied during writes: any change that a checkpoint makes in
 * the file is in the log, too. It holds a read mark of SQLite's and reads nothing. Writers do not wait for it, but the log grows. A process
 * may close a descriptor of the file only after the release: that releases its locks (POSIX, fcntl).
 */
export function holdLog(file: string): HeldLog {
  const [holder, watcher] = [openConnection(file, { alone: false }), openConnection(file, { alone: false })];
  const pageSize = Number(watcher.pragma("page_size"));
  holder.execute("BEGIN");
  rawQuery(holder.queries, "SELECT count(*) FROM sqlite_schema")([]);
  return {
    bytes: () => lengthOf(watcher.log().pages, pageSize),
    release: () => {
      for (const connection of [holder, watcher]) connection.close();
    },
  };
}

/** Writes a copy's log into the copy's file. */
export function completeCopy(copy: string): void {
  openConnection(copy).close();
  requireNoLog(copy);
}

/** Throws DamagedCopy. */
export function checkCopy(copy: string): void {
  const found = quickCheck(copy);
  if (found !== "ok") throw new DamagedCopy(`The copy of the database is damaged: ${found.slice(0, 200)}.`);
}

/** Throws if the copy has a log: closing a connection leaves it on a full disk. */
export const INCOMPLETE_COPY = "the copy of the database could not be completed: is the disk full?";

function requireNoLog(copy: string): void {
  if ((statSync(`${copy}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  throw new Error(INCOMPLETE_COPY);
}

/** Makes a backup that contains the copy invalid. */
export class DamagedCopy extends Error {
  override name = "DamagedCopy";
}

/** Reads a database that other processes may write concurrently, or a copy of one. */
export function readDatabase<T>(file: string, work: (queries: Queries) => T): T {
  const connection = openConnection(file, { alone: false });
  try {
    return work(connection.queries);
  } finally {
    connection.close();
  }
}

/** Migrates a copy, and runs the work required before a daemon starts on it. Afterwards all changes are in the file, without a log. */
export async function changeCopy<T>(copy: string, work: (database: Database) => Promise<T>): Promise<T> {
  const connection = openConnection(copy);
  try {
    migrate(connection);
  } catch (error) {
    connection.close();
    throw error;
  }
  const database = makeDatabase(connection);
  let done: T;
  try {
    done = await work(database);
  } finally {
    await database.close();
  }
  requireNoLog(copy);
  return done;
}

/** Whether this roomd would migrate a database that no process has open; false if it is absent or invalid. */
export function wouldMigrate(file: string): boolean {
  if (!existsSync(file)) return false;
  const connection = openConnection(file, { alone: false });
  try {
    return Number(connection.pragma("user_version")) < latestVersion();
  } catch {
    return false;
  } finally {
    connection.close();
  }
}

/** Reason for which a copy cannot replace the database, as a sentence; null if it can. */
export function whyUnusable(copy: string): string | null {
  const connection = openConnection(copy);
  try {
    const unknown = whyUnknown(Number(connection.pragma("user_version")));
    if (unknown !== null) return `Its database ${unknown}.`;
    const found = connection.pragma("quick_check");
    return found === "ok" ? null : `Its database is damaged: ${String(found).slice(0, 200)}.`;
  } catch (error) {
    return `Its database cannot be read: ${error instanceof Error ? error.message : String(error)}.`;
  } finally {
    connection.close();
  }
}
