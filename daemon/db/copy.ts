/** Owns copies of the database: taken at one moment while others write, and looked at before one is put in the database's place. */
import { closeSync, openSync } from "node:fs";
import { openConnection } from "./client.ts";
import { MIGRATIONS } from "./migrate.ts";

/** Writes what is committed now to a new file. Nobody who reads or writes waits for it. */
export function copyDatabase(file: string, to: string): void {
  const connection = openConnection(file);
  try {
    // Made before, so that it is nobody else's from its first byte on: SQLite takes a file that is empty.
    closeSync(openSync(to, "wx", 0o600));
    connection.execute(`VACUUM INTO '${to.replaceAll("'", "''")}'`);
  } finally {
    connection.close();
  }
}

/** Why a copy cannot take the database's place, in a sentence; null when it can. */
export function whyUnusable(copy: string): string | null {
  const connection = openConnection(copy);
  try {
    const schema = Number(connection.pragma("user_version"));
    if (schema > MIGRATIONS.length) {
      return `It is from a newer roomd: its database has schema ${schema}, this roomd knows ${MIGRATIONS.length}.`;
    }
    const found = connection.pragma("quick_check");
    return found === "ok" ? null : `Its database is damaged: ${String(found).slice(0, 200)}.`;
  } catch (error) {
    return `Its database cannot be read: ${error instanceof Error ? error.message : String(error)}.`;
  } finally {
    connection.close();
  }
}
