/**
 * A version of the database to come, with tables that are rewritten, and a process that does so as the daemon does until it is killed:
 *
 *   expand      agents gets a column, and another table takes its place
 *   fill        the column by UPDATE, the other table by INSERT, the old rows by DELETE
 *   contract    the old table goes
 */
import { makeCheckpoints } from "../../../daemon/db/checkpoints.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { runFills } from "../../../daemon/db/fills.ts";
import { makeLogSync } from "../../../daemon/db/log-sync.ts";
import { fillsOf, MIGRATIONS, type Migration } from "../../../daemon/db/migrate.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";

const AGENTS = { table: "agents", key: ["room_uid", "agent_id"] };

export const EXPANDED: readonly Migration[] = [
  ...MIGRATIONS,
  {
    sql: `ALTER TABLE agents ADD COLUMN label TEXT;
      CREATE TABLE agents_next (
        room_uid TEXT NOT NULL, agent_id TEXT NOT NULL, label TEXT NOT NULL, PRIMARY KEY (room_uid, agent_id)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX agents_next_by_label ON agents_next (label)`,
    fills: [
      {
        ...AGENTS,
        name: "agents.label",
        change: "UPDATE agents SET label = agent_id || ' of ' || room_uid WHERE $piece",
      },
      {
        ...AGENTS,
        name: "agents_next",
        change: "INSERT OR IGNORE INTO agents_next SELECT room_uid, agent_id, label FROM agents WHERE $piece",
      },
      { ...AGENTS, name: "agents.gone", change: "DELETE FROM agents WHERE $piece" },
    ],
  },
];
export const CONTRACTED: readonly Migration[] = [
  ...EXPANDED,
  {
    sql: "DROP TABLE agents; ALTER TABLE agents_next RENAME TO agents",
    after: ["agents.label", "agents_next", "agents.gone"],
  },
];

/** The database as a daemon has it. */
export function openAsDaemon(file: string) {
  const lost = (error: Error) => {
    throw error;
  };
  const connection = openConnection(file);
  return makeDatabase(connection, () => false, makeLogSync(file, lost), makeCheckpoints(file, connection, lost), lost);
}

/** Starts the process; it exits when there is nothing left to fill. */
export const startFilling = (file: string) =>
  Bun.spawn([process.execPath, import.meta.filename, file], { stdio: ["ignore", "inherit", "inherit"] });

if (import.meta.main) {
  const database = openAsDaemon(process.argv[2] as string);
  await runFills(database, fillsOf(EXPANDED), new AbortController().signal);
  await database.close();
  process.exit(0);
}
