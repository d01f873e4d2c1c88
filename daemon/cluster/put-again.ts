/**
 * Rows that a restored (set back) cluster directory must have again: ends, revocations and epochs (one-way.ts), and rows to which this
 * host's rows refer, such as the organization of a room.
 */
import { parseJson } from "../core/json.ts";
import type { SharedRow } from "../db/shared-rows.ts";
import type { Run } from "./connections.ts";
import type { Copy } from "./copy.ts";
import { withOneWay } from "./one-way.ts";

/** A row that the directory lacks, or of which it lacks an end. */
export type Again = Pick<SharedRow, "tbl" | "key"> & { isLacking: boolean };

/**
 * Rows that the directory still lacks, as it is to have them. A row that was deleted since its end was missed is not inserted again. Within the transaction
 * that has its lock.
 */
export async function lackingRows(
  run: Run,
  { queries, shared }: Copy,
  names: readonly Again[],
  isSetBack: boolean,
): Promise<SharedRow[]> {
  const { rows } = await run(
    `SELECT tbl, key, "row"::text AS row FROM roomd.rows
       JOIN json_to_recordset($1::json) AS given (tbl text, key text) USING (tbl, key) WHERE "row" IS NOT NULL`,
    [JSON.stringify(names.map(({ tbl, key }) => ({ tbl, key })))],
  );
  const found = rows as unknown as SharedRow[];
  const known = new Set(found.map(({ tbl, key }) => `${tbl} ${key}`));
  const missing = names.flatMap(({ tbl, key, isLacking }) => {
    const row = !isLacking || known.has(`${tbl} ${key}`) ? null : shared.read({ tbl, key });
    return row === null ? [] : [{ tbl, key, row }];
  });
  return [...withOneWay(queries, shared, found, isSetBack).again, ...(await withFreeNames(run, missing))];
}

/** Renames organizations if another organization has taken their name since. */
async function withFreeNames(run: Run, rows: readonly (SharedRow & { row: string })[]): Promise<SharedRow[]> {
  const parsed = rows.map((row) => ({ ...row, org: row.tbl === "orgs" ? orgOf(row.row) : null }));
  const names = parsed.flatMap(({ org }) => (org ? [org.name] : []));
  if (names.length === 0) return [...rows];
  const { rows: found } = await run(
    `SELECT "row" ->> 'name' AS name FROM roomd.rows WHERE tbl = 'orgs' AND "row" IS NOT NULL
        AND "row" ->> 'name' IN (SELECT json_array_elements_text($1::json))`,
    [JSON.stringify(names)],
  );
  const taken = new Set(found.map(({ name }) => String(name)));
  return parsed.map(({ org, ...row }) =>
    org && taken.has(org.name) ? { ...row, row: JSON.stringify({ ...org, name: ownName(org) }) } : row,
  );
}

interface Org {
  org_id: string;
  name: string;
}

const MAX_NAME = 90;
const orgOf = (row: string) => parseJson(Buffer.from(row)) as Org;
const ownName = ({ org_id, name }: Org) => `${name.slice(0, MAX_NAME)} ${org_id}`;
