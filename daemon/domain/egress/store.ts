/** Owns the queries about what sandboxes sent and received. */
import { eq, sql } from "drizzle-orm";
import type { SandboxId } from "../../../shared/ids.ts";
import { preparedBy, type Queries } from "../../db/client.ts";
import { egressUsage } from "./table.ts";

export interface Traffic {
  sent_bytes: number;
  received_bytes: number;
  connections: number;
}

export function addTraffic(queries: Queries, traffic: typeof egressUsage.$inferInsert): void {
  const more = (column: keyof Traffic) => sql`${egressUsage[column]} + ${traffic[column]}`;
  const set = {
    sent_bytes: more("sent_bytes"),
    received_bytes: more("received_bytes"),
    connections: more("connections"),
  };
  queries.insert(egressUsage).values(traffic).onConflictDoUpdate({ target: egressUsage.sandbox_id, set }).run();
}

/** Within a transaction: the sandbox is forgotten. */
export function forgetTraffic(queries: Queries, sandboxId: SandboxId): void {
  queries.delete(egressUsage).where(eq(egressUsage.sandbox_id, sandboxId)).run();
}

/** Of hundreds of sandboxes within a second, where somebody watches. */
const lookupOf = preparedBy((queries) =>
  queries
    .select()
    .from(egressUsage)
    .where(sql`${egressUsage.sandbox_id} = ${sql.placeholder("sandbox_id")}`)
    .prepare(),
);

/** What has been written; nothing is zero. */
export function trafficOf(queries: Queries, sandboxId: string): Traffic {
  const row = lookupOf(queries).get({ sandbox_id: sandboxId });
  const { sent_bytes = 0, received_bytes = 0, connections = 0 } = row ?? {};
  return { sent_bytes, received_bytes, connections };
}
