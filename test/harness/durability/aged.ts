/** Direct access of tests to a daemon's database: aging of rows, and queries for data that no call returns. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { TestDaemon } from "../daemon.ts";

function within<T>(daemon: TestDaemon, work: (database: Database) => T): T {
  const database = new Database(join(daemon.dataDir, "roomd.db"));
  database.exec("PRAGMA busy_timeout = 5000");
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/** Ages rows by `seconds`: moves the timestamps of a column back. */
export function age(daemon: TestDaemon, table: string, column: string, seconds: number): void {
  within(daemon, (database) => {
    const moved = `strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, '-${seconds} seconds')`;
    database.exec(`UPDATE ${table} SET ${column} = ${moved} WHERE ${column} IS NOT NULL`);
  });
}

export function query<T>(daemon: TestDaemon, sql: string): T[] {
  return within(daemon, (database) => database.query(sql).all() as T[]);
}
