/**
 * Owns this host's copy of what hosts share: up to which change it is whole, what is newer in the directory, and bringing it here. A daemon
 * and the operator's commands beside it have the same copy: whoever has news brings them, and once is enough.
 */
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import type { SharedRow, SharedRows } from "../db/shared-rows.ts";
import type { Run } from "./connections.ts";
import { mirror } from "./table.ts";

/** A change, by its number and a name that no other has: after a failover another may have the number. */
export interface Point {
  seq: number;
  change_id: string;
}

/** What is newer than a point: the rows, as of another one. All of them, where that point is none that the directory knows. */
export interface News {
  to: Point;
  rows: NumberedRow[];
  isWhole: boolean;
  /** Those of the changes since that one host has made. */
  own: Point[];
}

/** A row, and by which change it is so. */
export interface NumberedRow extends SharedRow {
  seq: number;
}

const NOTHING: Point = { seq: 0, change_id: "" };

/** Of a copy that has what the directory lacks: one that no directory knows, so that the copy is compared again until it has all. */
export const unsaid = ({ seq, change_id }: Point): Point => ({ seq, change_id: `unsaid ${change_id}` });

export function pointOf(queries: Queries): Point {
  return queries.select({ seq: mirror.seq, change_id: mirror.change_id }).from(mirror).get() ?? NOTHING;
}

function setPoint(queries: Queries, { seq, change_id }: Point): void {
  const row = { only_one: 1, seq, change_id };
  queries.insert(mirror).values(row).onConflictDoUpdate({ target: mirror.only_one, set: row }).run();
}

const NEWS = `
  WITH here AS (SELECT seq, cluster_id FROM roomd.cluster),
       known AS (SELECT $1 = 0 OR EXISTS (SELECT FROM roomd.changes WHERE seq = $1 AND change_id = $2) AS is_known)
  SELECT here.seq::float8 AS seq, here.cluster_id = $3 AS is_ours, known.is_known,
         (SELECT change_id FROM roomd.changes WHERE changes.seq = here.seq) AS change_id,
         (SELECT json_agg(json_build_array(changes.seq, change_id) ORDER BY changes.seq)
            FROM roomd.changes WHERE known.is_known AND changes.seq > $1 AND host_id = $4) AS own,
         (SELECT json_agg(json_build_array(tbl, key, "row"::text, rows.seq) ORDER BY rows.seq)
            FROM roomd.rows
           WHERE rows.seq > CASE WHEN known.is_known THEN $1 ELSE 0 END AND ("row" IS NOT NULL OR known.is_known)) AS rows
    FROM here, known`;

interface Said {
  seq: number;
  is_ours: boolean;
  is_known: boolean;
  change_id: string | null;
  own: [seq: number, change_id: string][] | null;
  rows: [tbl: string, key: string, row: string | null, seq: number][] | null;
}

/** Asks for what is newer, in one statement: all of it is of one moment. Throws where the database is another service's. */
export async function newsSince(
  run: Run,
  from: Point,
  { cluster_id, host_id }: { cluster_id: string; host_id: string },
): Promise<News> {
  const { rows } = await run(NEWS, [from.seq, from.change_id, cluster_id, host_id]);
  const said = rows[0] as unknown as Said | undefined;
  if (!said) throw new Error("the database is no directory of hosts: `roomd cluster init` makes it one");
  if (!said.is_ours) throw anotherService();
  return {
    to: { seq: said.seq, change_id: said.change_id ?? "" },
    rows: (said.rows ?? []).map(([tbl, key, row, seq]) => ({ tbl, key, row, seq })),
    isWhole: !said.is_known,
    own: (said.own ?? []).map(([seq, change_id]) => ({ seq, change_id })),
  };
}

/** Its rows would take the place of all that this host has. */
function anotherService(): ServiceError {
  return new ServiceError("cluster_unavailable", {
    detail: "The database is the directory of another service of hosts.",
    hint: "Set cluster.url to the database that this host joined by.",
  });
}

/**
 * The write that applies news which were read from a point on, null where there are none. It returns false, and writes nothing, if they are
 * applied already. `first` runs in the same commit, before.
 */
export function bringing(
  shared: SharedRows,
  from: Point,
  { to, rows, isWhole }: Pick<News, "to" | "isWhole"> & { rows: SharedRow[] },
  first: (queries: Queries) => void = () => {},
): ((queries: Queries) => boolean) | null {
  if (to.seq <= from.seq && !isWhole) return null;
  return (queries) => {
    const at = pointOf(queries);
    if (at.change_id !== from.change_id) return false;
    first(queries);
    shared.bring(isWhole ? withoutOthers(shared, rows) : rows);
    setPoint(queries, to);
    return true;
  };
}

/** All rows as they are to be, and that there are no others: the directory lost changes that were brought here, or forgot how to tell. */
function withoutOthers(shared: SharedRows, rows: readonly SharedRow[]): SharedRow[] {
  const named = new Set(rows.map(({ tbl, key }) => `${tbl} ${key}`));
  const others = shared.all().filter(({ tbl, key }) => !named.has(`${tbl} ${key}`));
  return [...others.map((other) => ({ ...other, row: null })), ...rows];
}
