/**
 * Reads the cluster directory: the point up to which this host's copy has its changes, and the following changes in pages of bounded size.
 *
 *   known point    the changes after it, page by page: each page moves the point
 *   seen           the newest change as of which rows were read: a page has rows as they are by later changes than its last one, or lacks them,
 *                  until those follow. A directory that loses that change requires a comparison of the whole copy
 *   any other      all rows table by table, as for a host that joins, or has a copy of changes that the directory lost (whole.ts)
 */
import { ServiceError } from "../core/service-error.ts";
import { preparedBy, type Queries, rawStatement } from "../db/client.ts";
import type { SharedRow } from "../db/shared-rows.ts";
import type { Run } from "./connections.ts";
import { mirror } from "./table.ts";

/** A change, by its number and a unique name: after a failover another change may have the number. */
export interface Point {
  seq: number;
  change_id: string;
}

/** A row, and the number of the change that last wrote it. */
export interface NumberedRow extends SharedRow {
  seq: number;
}

/** Last row read of a change that exceeds one page. */
type Cursor = Pick<NumberedRow, "seq" | "tbl" | "key">;

/** Remainder of a change that the copy has in part; `from` is the point of the copy. */
export interface Rest {
  from: Point;
  after: Cursor;
}

export interface Changes {
  rows: NumberedRow[];
  /** Point of the copy after these rows; the previous point if more of the same change follow. */
  to: Point;
  rest: Rest | null;
  /** The newest change as of which the rows were read. */
  seen: Point;
  /** Changes that one host has made. */
  own: Point[];
  /** Whether nothing follows. */
  isLast: boolean;
}

/** The cluster directory relative to this host's copy. */
export interface Head {
  to: Point;
  /** Null: the directory does not have the point of the copy. */
  changes: Changes | null;
  /** Whether the directory lost the change of that point, rather than having pruned it after some days. */
  isSetBack: boolean;
}

export type Reader = { cluster_id: string; host_id: string };

const PAGE_ROWS = 500;
/** Changes of a page, including changes without remaining rows. */
export const PAGE_CHANGES = 1_000;

const NOTHING: Point = { seq: 0, change_id: "" };

export const isNothing = ({ seq }: Point) => seq === 0;
export const isSame = (a: Point, b: Point) => a.seq === b.seq && a.change_id === b.change_id;

/** Prepared statements of each round and each poll of the cluster directory. */
const prepare = preparedBy((queries: Queries) => ({
  read: queries.select().from(mirror).prepare(),
  set: rawStatement(
    queries,
    `INSERT INTO mirror (only_one, seq, change_id) VALUES (1, ?1, ?2)
     ON CONFLICT (only_one) DO UPDATE SET seq = excluded.seq, change_id = excluded.change_id`,
  ),
  see: rawStatement(
    queries,
    `INSERT INTO mirror (only_one, seq, change_id, seen_seq, seen_change_id) VALUES (1, ?1, ?2, ?3, ?4)
     ON CONFLICT (only_one) DO UPDATE SET seen_seq = excluded.seen_seq, seen_change_id = excluded.seen_change_id`,
  ),
}));

export function pointOf(queries: Queries): Point {
  const { seq, change_id } = prepare(queries).read.get() ?? NOTHING;
  return { seq, change_id };
}

export function setPoint(queries: Queries, { seq, change_id }: Point): void {
  prepare(queries).set([seq, change_id]);
}

/** The newest change as of which rows of the copy were read, if it is later than its point; null: it is not. */
export function seenOf(queries: Queries): Point | null {
  const { seq, seen_seq, seen_change_id } = prepare(queries).read.get() ?? { seq: 0, seen_seq: null };
  return seen_seq === null || seen_seq <= seq ? null : { seq: seen_seq, change_id: seen_change_id ?? "" };
}

/** Within a commit, before rows as of that change. */
export function setSeen(queries: Queries, seen: Point): void {
  const { seq, change_id } = pointOf(queries);
  prepare(queries).see([seq, change_id, seen.seq, seen.change_id]);
}

/** Point of a copy that is being compared: no cluster directory has it, so an interrupted comparison begins again. */
export const COMPARING: Point = { seq: Number.MAX_SAFE_INTEGER, change_id: "comparing" };

/** Whether the cluster directory lacks rows of the copy that this host could not insert again. */
export function isOwed(queries: Queries): boolean {
  return prepare(queries).read.get()?.is_owed ?? false;
}

/** Within a commit. */
export function setOwed(queries: Queries, is_owed: boolean): void {
  const row = { only_one: 1, ...pointOf(queries), is_owed };
  queries.insert(mirror).values(row).onConflictDoUpdate({ target: mirror.only_one, set: { is_owed } }).run();
}

const HEAD = `
  SELECT seq::float8 AS seq, cluster_id = $3 AS is_ours,
         (SELECT change_id FROM roomd.changes WHERE changes.seq = cluster.seq) AS change_id,
         EXISTS (SELECT FROM roomd.changes WHERE changes.seq = $1 AND change_id = $2) AS is_known,
         $4::bigint IS NULL OR EXISTS (SELECT FROM roomd.changes WHERE changes.seq = $4 AND change_id = $5) AS is_seen_known,
         EXISTS (SELECT FROM roomd.changes WHERE changes.seq <= $1) AS has_earlier
    FROM roomd.cluster`;
const CHANGES = `
  SELECT seq::float8 AS seq, change_id, host_id = $3 AS is_own FROM roomd.changes
   WHERE seq > $1 AND seq <= $2 ORDER BY changes.seq LIMIT $4`;
const ROWS = `
  SELECT tbl, key, "row"::text AS row, seq::float8 AS seq FROM roomd.rows
   WHERE (rows.seq, tbl, key) > ($1, $2, $3) AND rows.seq <= $4 ORDER BY rows.seq, tbl, key LIMIT ${PAGE_ROWS}`;

interface Named {
  to: Point;
  /** Presence of the point and of the seen change in the directory. */
  isKnown: boolean;
  isSeenKnown: boolean;
  hasEarlier: boolean;
}

async function headOf(run: Run, from: Point, seen: Point | null, cluster_id: string): Promise<Named> {
  const values = [from.seq, from.change_id, cluster_id, seen?.seq ?? null, seen?.change_id ?? null];
  const [head] = (await run(HEAD, values)).rows;
  if (!head) throw new Error("the database is not a directory of hosts: run `roomd cluster init` to create one");
  if (head.is_ours !== true) throw anotherService();
  return {
    to: { seq: Number(head.seq), change_id: String(head.change_id ?? "") },
    isKnown: head.is_known === true,
    isSeenKnown: head.is_seen_known === true,
    hasEarlier: head.has_earlier === true,
  };
}

const NEWEST = `
  SELECT seq::float8 AS seq, (SELECT change_id FROM roomd.changes WHERE changes.seq = cluster.seq) AS change_id FROM roomd.cluster`;

/** The last change, after rows were read in the same transaction. */
async function newest(run: Run): Promise<Point> {
  const [head] = (await run(NEWEST)).rows;
  return { seq: Number(head?.seq), change_id: String(head?.change_id ?? "") };
}

/** Whether the cluster directory has a change; all of it, if none is given. */
export async function hasChange(run: Run, point: Point | null): Promise<boolean> {
  if (point === null) return true;
  const { rows } = await run("SELECT FROM roomd.changes WHERE seq = $1 AND change_id = $2", [
    point.seq,
    point.change_id,
  ]);
  return rows.length > 0;
}

/**
 * Reads rows of a directory with the change `seen`. Returns them with the newest change at that moment, or null for a directory without `seen`,
 * which was set back. Within a transaction.
 */
export async function readSince<T>(
  run: Run,
  seen: Point | null,
  read: () => Promise<T>,
): Promise<{ found: T; seen: Point } | null> {
  if (!(await hasChange(run, seen))) return null;
  const found = await read();
  return { found, seen: await newest(run) };
}

/**
 * Reads the next page after a point. Rows that change between its statements belong to a later page. Throws if the database is the
 * directory of another service.
 */
export async function readChanges(
  run: Run,
  from: Point,
  seen: Point | null,
  rest: Rest | null,
  { cluster_id, host_id }: Reader,
  mostChanges: number,
): Promise<Head> {
  const { to, isKnown, isSeenKnown, hasEarlier } = await headOf(run, from, seen, cluster_id);
  if (isSeenKnown && isSame(from, to))
    return { to, changes: { rows: [], to, seen: to, rest: null, own: [], isLast: true }, isSetBack: false };
  if (!isKnown || !isSeenKnown || to.seq < from.seq) {
    // Changes are forgotten in their order: if an earlier one is known, this one was lost.
    const isLost = to.seq < from.seq || (hasEarlier && !isNothing(from));
    return { to, changes: null, isSetBack: isKnown ? seen?.change_id !== COMPARING.change_id : isLost };
  }
  const changes = (await run(CHANGES, [from.seq, to.seq, host_id, mostChanges])).rows as unknown as (Point & {
    is_own: boolean;
  })[];
  const end = changes.at(-1) ?? to;
  const { seq, tbl, key } = rest && isSame(rest.from, from) ? rest.after : { seq: from.seq + 1, tbl: "", key: "" };
  const rows = (await run(ROWS, [seq, tbl, key, end.seq])).rows as unknown as NumberedRow[];
  const now = await newest(run);
  // Changes up to that point were pruned since, and with them deleted rows of this page.
  if (!isNothing(from) && !(await hasChange(run, from))) return { to, changes: null, isSetBack: false };
  const last = rows.length < PAGE_ROWS ? undefined : rows.at(-1);
  if (last === undefined) return { to, changes: page(rows, end, changes, to, now), isSetBack: false };
  const ended = rows.filter((row) => row.seq < last.seq);
  if (ended.length === 0) {
    const more = { rest: { from, after: last }, isLast: false };
    return { to, changes: { ...page(rows, last, changes, to, now), to: from, ...more }, isSetBack: false };
  }
  const before = changes.findLast((change) => change.seq < last.seq) ?? from;
  return { to, changes: page(ended, before, changes, to, now), isSetBack: false };
}

function page(
  rows: NumberedRow[],
  end: { seq: number; change_id?: string },
  changes: readonly (Point & { is_own: boolean })[],
  head: Point,
  seen: Point,
): Changes {
  const own = changes.filter(({ seq, is_own }) => is_own && seq <= end.seq);
  const to = { seq: end.seq, change_id: end.change_id ?? "" };
  return { rows, to, seen, rest: null, own, isLast: end.seq === head.seq };
}

/** Applying another service's rows would replace all of this host's. */
function anotherService(): ServiceError {
  return new ServiceError("cluster_unavailable", {
    detail: "The database is the directory of another service of hosts.",
    hint: "Set cluster.url to the database that this host joined by.",
  });
}

const TABLE = `
  SELECT max(key) AS last, json_agg(json_build_array(key, "row"::text)) FILTER (WHERE "row" IS NOT NULL) AS rows
    FROM (SELECT key, "row" FROM roomd.rows WHERE tbl = $1 AND key > $2 ORDER BY key LIMIT ${PAGE_ROWS}) page`;

/** The next rows of a table in their current state; later changes of these rows follow separately. `last` is null after the last page. */
export async function readTable(
  run: Run,
  tbl: string,
  after: string,
): Promise<{ rows: SharedRow[]; last: string | null }> {
  const [page] = (await run(TABLE, [tbl, after])).rows;
  const rows = (page?.rows ?? []) as [key: string, row: string][];
  return { rows: rows.map(([key, row]) => ({ tbl, key, row })), last: (page?.last ?? null) as string | null };
}

/** Those of the keys that have no row in the cluster directory. */
export async function missingKeys(run: Run, tbl: string, keys: readonly string[]): Promise<string[]> {
  const { rows } = await run(
    `SELECT given.key FROM json_array_elements_text($2::json) AS given (key)
      WHERE NOT EXISTS (SELECT FROM roomd.rows WHERE tbl = $1 AND rows.key = given.key AND "row" IS NOT NULL)`,
    [tbl, JSON.stringify(keys)],
  );
  return rows.map(({ key }) => String(key));
}
