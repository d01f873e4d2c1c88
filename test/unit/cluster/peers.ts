/** Hosts of one service for tests of the directory: each has separate tables and rounds, and all share one real PostgreSQL server. */
import { randomUUID } from "node:crypto";
import { sql } from "drizzle-orm";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import { Connections, type Run } from "../../../daemon/cluster/connections.ts";
import { Rounds } from "../../../daemon/cluster/rounds.ts";
import { makeSchema } from "../../../daemon/cluster/schema.ts";
import { SHARED_TABLES } from "../../../daemon/cluster/table.ts";
import { countUnfit } from "../../../daemon/cluster/unfit.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { type Connection, openConnection, type Queries } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { SharedRows, type SharedTable } from "../../../daemon/db/shared-rows.ts";
import { type LocalDatabase, makeDatabase } from "../../../daemon/db/transact.ts";
import { insertRow } from "../../harness/durability/insert-row.ts";
import type { Postgres } from "../../harness/hosts/postgres.ts";

export interface Peer {
  rounds: Rounds;
  queries: Queries;
  database: LocalDatabase;
  connection: Connection;
  shared: SharedRows;
  news: number;
  commits: number;
  /** Records of rows that the directory had lost. */
  putAgain: Record<string, Record<string, string[]>>[];
  unfit(): number;
  /** Inserts a local row, or within a change a shared row. */
  insert(table: string, values: Record<string, string | number>): void;
  /** Commits new changes, as an operator's command does while the daemon runs. */
  beside(): Promise<void>;
  /** Rounds on the same replica; their changes wait for at most `patienceMs`. */
  impatient(patienceMs: number): Rounds;
  close(): Promise<void>;
}

/** Makes an empty directory. */
export async function newDirectory(server: Postgres): Promise<void> {
  await server.sql("DROP SCHEMA IF EXISTS roomd CASCADE");
  await within(server, async (run) => {
    await makeSchema(run);
    await run("INSERT INTO roomd.cluster (cluster_id, version, seq) VALUES ('c', 1, 0)");
  });
}

export async function within(server: Postgres, work: (run: Run) => Promise<unknown>, ms = 5_000): Promise<void> {
  const connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
  await connections.transaction(work, ms);
  connections.close();
}

interface PeerOptions {
  tables?: readonly SharedTable[];
  file?: string;
  /** Called before each statement of a transaction. */
  before?(text: string): Promise<void>;
  /** Flush of the host's disk: resolves at its end; null if the disk is quick. */
  flush?(): Promise<void> | null;
}

class WatchedConnections extends Connections {
  readonly #before: (text: string) => Promise<void>;

  constructor(server: Postgres, before: (text: string) => Promise<void>) {
    super({ addresses: readAddresses(server.url("tcp")) });
    this.#before = before;
  }

  override transaction<T>(work: (run: Run) => Promise<T>, ms: number): Promise<T> {
    return super.transaction(async (run) => {
      const watched: Run = async (text, values) => {
        await this.#before(text);
        return await run(text, values);
      };
      return await work(watched);
    }, ms);
  }
}

export async function newPeer(
  server: Postgres,
  host_id: string,
  { tables = SHARED_TABLES, file = ":memory:", before = async () => {}, flush = () => null }: PeerOptions = {},
): Promise<Peer> {
  const connection = openConnection(file);
  migrate(connection);
  const database = makeDatabase(connection, () => false, { sync: flush, close: () => {} });
  const shared = new SharedRows(database.queries, tables);
  const connections = new WatchedConnections(server, before);
  const incarnation = randomUUID();
  await connections.transaction(
    (run) => run("INSERT INTO roomd.leases VALUES ($1, $2, '1', now(), '{}')", [host_id, incarnation]),
    5000,
  );
  const common = { database, shared, connections, member: { cluster_id: "c", host_id, incarnation } };
  const made: Peer = {
    queries: database.queries,
    ...{ database, connection, shared },
    news: 0,
    commits: 0,
    putAgain: [],
    rounds: new Rounds({
      ...{ ...common, log: makeLog("error") },
      onNews: () => made.news++,
      putAgain: (_, { orgs }) => made.putAgain.push(Object.fromEntries(orgs)),
    }),
    unfit: () => countUnfit(database.queries),
    insert: (table, values) => insertRow(connection, database, table, values),
    beside: () => new Rounds({ ...common, log: makeLog("error"), onNews: () => {} }).pull(),
    impatient: (patienceMs) => new Rounds({ ...common, patienceMs, log: makeLog("error"), onNews: () => {} }),
    close: async () => {
      await made.rounds.settle();
      connections.close();
      await database.close();
    },
  };
  database.onCommit(() => made.commits++);
  return made;
}

/** Rows in a form that is the same for both databases. */
const canonical = (tbl: string, key: string, row: string) => {
  const columns = Object.entries(JSON.parse(row) as Record<string, unknown>).filter(([, value]) => value !== null);
  return `${tbl} ${key} ${JSON.stringify(columns.sort(([a], [b]) => (a < b ? -1 : 1)))}`;
};

export const copyOf = ({ shared }: Peer): string[] =>
  shared
    .all()
    .map(({ tbl, key, row }) => canonical(tbl, key, String(row)))
    .sort();

export async function directoryOf(server: Postgres): Promise<string[]> {
  const rows = await server.sql(`SELECT coalesce(json_agg(json_build_array(tbl, key, "row"::text)), '[]')
    FROM roomd.rows WHERE "row" IS NOT NULL`);
  return (JSON.parse(rows) as [string, string, string][]).map((row) => canonical(...row)).sort();
}

/** Replaces the directory's history: it recognizes no earlier change by its id. */
export const forgetPast = (server: Postgres) =>
  server.sql("UPDATE roomd.changes SET change_id = gen_random_uuid()::text");

export const orgsOf = ({ queries }: Peer): string[] =>
  queries.all<{ org_id: string }>(sql`SELECT org_id FROM orgs ORDER BY org_id`).map(({ org_id }) => org_id);
