/** Owns what tests do to a daemon's database beside it: let time go by, and look at what no call shows. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { TestDaemon } from "./daemon.ts";

function within<T>(daemon: TestDaemon, work: (database: Database) => T): T {
  const database = new Database(join(daemon.dataDir, "roomd.db"));
  database.exec("PRAGMA busy_timeout = 5000");
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/** As if so much more time had gone by since, or were over: moments of a column are moved back. */
export function age(daemon: TestDaemon, table: string, column: string, seconds: number): void {
  within(daemon, (database) => {
    const moved = `strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, '-${seconds} seconds')`;
    database.exec(`UPDATE ${table} SET ${column} = ${moved} WHERE ${column} IS NOT NULL`);
  });
}

export function query<T>(daemon: TestDaemon, sql: string): T[] {
  return within(daemon, (database) => database.query(sql).all() as T[]);
}
