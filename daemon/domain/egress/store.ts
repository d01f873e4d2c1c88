/** Queries for the traffic of sandboxes and its destinations. */
import { asc, eq, getTableColumns, sql } from "drizzle-orm";
import type { SandboxId } from "../../../shared/ids.ts";
import { preparedBy, type Queries, rawStatement } from "../../db/client.ts";
import { egressDestinations, egressNetworks, egressUsage } from "./table.ts";

export interface Traffic {
  sent_bytes: number;
  received_bytes: number;
  connections: number;
}

/** Adds to the row of a sandbox, one of hundreds in a write. */
export function addTraffic(queries: Queries, traffic: typeof egressUsage.$inferInsert): void {
  const { sandbox_id, org_id, room_uid, sent_bytes, received_bytes, connections } = traffic;
  addingOf(queries)([sandbox_id, org_id, room_uid, sent_bytes, received_bytes, connections]);
}

const addingOf = preparedBy((queries) =>
  rawStatement(
    queries,
    `INSERT INTO egress_usage (sandbox_id, org_id, room_uid, sent_bytes, received_bytes, connections) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (sandbox_id) DO UPDATE SET sent_bytes = sent_bytes + excluded.sent_bytes,
       received_bytes = received_bytes + excluded.received_bytes, connections = connections + excluded.connections`,
  ),
);

/** Within a transaction: deletes the rows of a removed sandbox. */
export function forgetTraffic(queries: Queries, sandboxId: SandboxId): void {
  for (const table of [egressUsage, egressDestinations, egressNetworks]) {
    queries.delete(table).where(eq(table.sandbox_id, sandboxId)).run();
  }
}

/** For hundreds of sandboxes per second while a client watches them. */
const lookupOf = preparedBy((queries) =>
  queries
    .select()
    .from(egressUsage)
    .where(sql`${egressUsage.sandbox_id} = ${sql.placeholder("sandbox_id")}`)
    .prepare(),
);

/** Stored traffic; zero if none exists. */
export function trafficOf(queries: Queries, sandboxId: string): Traffic {
  const row = lookupOf(queries).get({ sandbox_id: sandboxId });
  const { sent_bytes = 0, received_bytes = 0, connections = 0 } = row ?? {};
  return { sent_bytes, received_bytes, connections };
}

export type DestinationRow = typeof egressDestinations.$inferSelect;
export type NetworkRow = typeof egressNetworks.$inferSelect;

/** Stored destinations of a sandbox, the least recent first. */
export function networkOf(queries: Queries, sandboxId: SandboxId) {
  const ofIt = eq(egressDestinations.sandbox_id, sandboxId);
  const { last_at, slot } = egressDestinations;
  return {
    network: queries.select().from(egressNetworks).where(eq(egressNetworks.sandbox_id, sandboxId)).get() ?? null,
    destinations: queries.select().from(egressDestinations).where(ofIt).orderBy(asc(last_at), asc(slot)).all(),
  };
}

/** Each row replaces the previous one of its slot. */
export function saveNetwork(queries: Queries, network: NetworkRow, destinations: readonly DestinationRow[]): void {
  const { sandbox_id: _, ...others } = network;
  const target = egressNetworks.sandbox_id;
  queries.insert(egressNetworks).values(network).onConflictDoUpdate({ target, set: others }).run();
  const save = savingOf(queries);
  for (const row of destinations) save.run(row);
}

/** Some thousand of them in a commit, if guests are hostile. */
const savingOf = preparedBy((queries) => {
  const { sandbox_id, allowed, slot } = egressDestinations;
  const names = Object.keys(getTableColumns(egressDestinations)) as (keyof DestinationRow)[];
  const values = Object.fromEntries(names.map((name) => [name, sql.placeholder(name)]));
  const set = Object.fromEntries(names.map((name) => [name, sql.raw(`excluded.${name}`)]));
  return queries
    .insert(egressDestinations)
    .values(values as unknown as DestinationRow)
    .onConflictDoUpdate({ target: [sandbox_id, allowed, slot], set })
    .prepare();
});
