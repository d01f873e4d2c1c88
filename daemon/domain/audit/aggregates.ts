/**
 * Counts of calls that are not recorded individually: counted within the transaction of the call, so that every acknowledged call is
 * accounted for. Similar calls share a row, and a chain has a limited number of rows; each becomes a record later, with the count and the
 * last call.
 */
import { preparedBy, type Queries, rawQuery, rawStatement } from "../../db/client.ts";
import { type ChainKey, orgOfChain } from "./chain/chain-key.ts";
import type { AuditEntry } from "./entry.ts";
import { auditCounts } from "./table.ts";

/** Rows of one chain; above this, rooms, agents and callers are not distinguished. */
const MAX_ROWS = 256;
/** Actor of the row that they then share. */
const SEVERAL = { type: "system", id: "audit", name: "several callers" };

interface CountRow {
  event: string;
  outcome: AuditEntry["outcome"];
  actor_id: string;
  count: number;
  first_at: string;
  last_at: string;
  last_entry: string;
}

const statementsOf = preparedBy((queries: Queries) => ({
  add: rawQuery(
    queries,
    `UPDATE audit_counts SET count = count + ?, last_at = ?, last_entry = ? WHERE org_key = ? AND event = ? AND outcome = ?
     AND room_uid = ? AND agent_id = ? AND actor_id = ? AND error_code = ? RETURNING 1`,
  ),
  insert: rawStatement(
    queries,
    `INSERT INTO audit_counts (count, last_at, last_entry, org_key, event, outcome, room_uid, agent_id, actor_id, error_code, first_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ),
  rows: rawQuery<{ n: number }>(queries, "SELECT count(*) AS n FROM audit_counts WHERE org_key = ?"),
  take: rawQuery<CountRow>(queries, "DELETE FROM audit_counts WHERE org_key = ? RETURNING *"),
}));

/** Within a transaction. */
export function aggregateAudit(queries: Queries, key: ChainKey, entry: AuditEntry): void {
  const { add, insert, rows } = statementsOf(queries);
  const { event, outcome, at, room_uid = "", agent_id = "", actor, error_code = "", details } = entry;
  // The entry may itself be a count.
  const count = typeof details.count === "number" ? details.count : 1;
  const finest = [count, at, JSON.stringify(entry), key, event, outcome, room_uid, agent_id, actor.id, error_code];
  if (add(finest).length > 0) return;
  if ((rows([key])[0]?.n ?? 0) < MAX_ROWS) {
    insert([...finest, at]);
    return;
  }
  const { status, source, org_id } = entry;
  const ofSeveral = { event, outcome, at, org_id, actor: SEVERAL, source, status, details: {} } satisfies AuditEntry;
  const coarse = [count, at, JSON.stringify(ofSeveral), key, event, outcome, "", "", "", ""];
  if (add(coarse).length === 0) insert([...coarse, at]);
}

/** Within a transaction: takes the counts of a chain, as records. */
export function takeAggregates(queries: Queries, key: ChainKey): AuditEntry[] {
  return statementsOf(queries)
    .take([key])
    .map(({ count, first_at, last_at, last_entry }) => {
      const { duration_ms: _, details: last, ...entry } = JSON.parse(last_entry) as AuditEntry;
      return { ...entry, org_id: orgOfChain(key), at: last_at, details: { count, first_at, last_at, last } };
    });
}

/** Chains with counted entries. */
export function aggregatedChains(queries: Queries): ChainKey[] {
  const { org_key } = auditCounts;
  const rows = queries.selectDistinct({ org_key }).from(auditCounts).all();
  return rows.map((row) => row.org_key);
}
