/**
 * Changes that were committed but not recorded here: this host ended between the cluster directory's commit and its own, or never got the
 * answer to the first. The actor is unknown; the changed rows are in the directory.
 */
import type { SharedRows } from "../db/shared-rows.ts";
import type { NumberedRow, Point } from "./replica.ts";

const MAX_KEYS = 20;

export interface Recovered {
  /** Sequence number of the change in the directory. */
  seq: number;
  /** Changed rows by table, for each organization; null: the service as a whole. */
  orgs: Map<string | null, Record<string, string[]>>;
}

/** `rows` are those of the change: a row that was changed again since belongs to that later change. Called before they are applied. */
export function recoveredOf(shared: SharedRows, { seq }: Point, rows: readonly NumberedRow[]): Recovered {
  const orgs: Recovered["orgs"] = new Map();
  for (const row of rows) {
    const rowJson = row.row ?? shared.read(row);
    const { org_id } = (rowJson === null ? {} : JSON.parse(rowJson)) as { org_id?: string | null };
    const tables = orgs.get(org_id ?? null) ?? {};
    orgs.set(org_id ?? null, tables);
    const keys = tables[row.tbl] ?? [];
    tables[row.tbl] = keys;
    // A row without an organization may name a person in its key.
    if (org_id && keys.length < MAX_KEYS) keys.push((JSON.parse(row.key) as unknown[]).join(" "));
  }
  if (orgs.size === 0) orgs.set(null, {});
  return { seq, orgs };
}
