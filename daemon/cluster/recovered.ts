/**
 * Owns what is told of a change that is true and was not recorded: this host ended between the directory's commit and its own, or never heard
 * whether the first was done. Who had asked for it is not known any more; what it changed is in the directory.
 */
import type { SharedRows } from "../db/shared-rows.ts";
import type { NumberedRow, Point } from "./mirror.ts";

const MOST_KEYS = 20;

export interface Recovered {
  /** The change's number in the directory. */
  seq: number;
  /** Of each organization that it is about, and of the service as null: rows by their tables. */
  orgs: Map<string | null, Record<string, string[]>>;
}

/** `rows` are those of the change: one that was changed again since belongs to that change. Called before they are brought. */
export function recoveredOf(shared: SharedRows, { seq }: Point, rows: readonly NumberedRow[]): Recovered {
  const orgs: Recovered["orgs"] = new Map();
  for (const row of rows) {
    const said = row.row ?? shared.read(row);
    const { org_id } = (said === null ? {} : JSON.parse(said)) as { org_id?: string | null };
    const tables = orgs.get(org_id ?? null) ?? {};
    orgs.set(org_id ?? null, tables);
    const keys = tables[row.tbl] ?? [];
    tables[row.tbl] = keys;
    // Of what is nobody's organization's a key may say who it is about.
    if (org_id && keys.length < MOST_KEYS) keys.push((JSON.parse(row.key) as unknown[]).join(" "));
  }
  if (orgs.size === 0) orgs.set(null, {});
  return { seq, orgs };
}
