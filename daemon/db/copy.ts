/** Owns copies of the database: taken at one moment while others write, and looked at before one is put in the database's place. */
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { openConnection, type Queries, quickCheck } from "./client.ts";
import { latestVersion, migrate, whyUnknown } from "./migrate.ts";
import { type Database, makeDatabase } from "./transact.ts";

/** Writes the present commits to a new file, and checks it. Readers and writers go on meanwhile. Throws if the copy is damaged. */
export function copyDatabase(file: string, to: string): void {
  const connection = openConnection(file, { alone: false });
  try {
    // Made before, so that it is nobody else's from its first byte on: SQLite takes a file that is empty.
    closeSync(openSync(to, "wx", 0o600));
    connection.execute(`VACUUM INTO '${to.replaceAll("'", "''")}'`);
  } finally {
    connection.close();
  }
  const found = quickCheck(to);
  if (found !== "ok") throw new DamagedCopy(`The copy of the database is damaged: ${found.slice(0, 200)}.`);
}

/** A backup with it is invalid. */
export class DamagedCopy extends Error {
  override name = "DamagedCopy";
}

/** Reads a database that others may write meanwhile, or a copy of one. */
export function readDatabase<T>(file: string, work: (queries: Queries) => T): T {
  const connection = openConnection(file, { alone: false });
  try {
    return work(connection.queries);
  } finally {
    connection.close();
  }
}

/** Brings a copy to what this roomd knows, and does what has to be done before a daemon starts on it. The file alone has all of it then. */
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
  // As on a full disk: the connection closes all the same.
  if ((statSync(`${copy}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new Error("the copy of the database could not be completed: is the disk full?");
  }
  return done;
}

/** Whether this roomd would change the schema of a database that nobody has open; one that is not there or is none it would not. */
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

/** Why a copy cannot take the database's place, in a sentence; null when it can. */
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
