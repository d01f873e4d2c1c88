/**
 * This host's copies of shared rows: collects the changes of a dry run, applies committed rows, and refuses any other change.
 *
 *   closed      a change of such a row is an error: shared rows change only through the cluster directory
 *   trying      changes are noted, by table and key (dry-run.ts)
 *   bringing    rows are set to the cluster directory's state
 */

import { isDiskFailure, isDiskFull } from "../core/disk-failure.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import { noteOthersWrites, type Queries, rawQuery, rawStatement, rawValues } from "./client.ts";
import { trialOf } from "./dry-run.ts";

/** The target state of a row, as JSON by column; null: deleted. */
export interface SharedRow {
  tbl: string;
  /** Values of the primary key, in JSON. */
  key: string;
  row: string | null;
}

/** A row that its table rejects, with the reason. */
export interface UnfitRow extends SharedRow {
  reason: string;
}

/** A table of shared rows, all but some. */
export interface SharedTable {
  name: string;
  but?: { column: string; is: string };
  /** The table's rows grant access: if a new version of a row does not fit, the old version is removed. */
  grantsAccess?: boolean;
}

export const whole = (name: string): SharedTable => ({ name });

type Mode = "closed" | "trying" | "bringing";

interface Table {
  name: string;
  columns: readonly string[];
  keys: readonly string[];
  /** SQL condition that selects the shared rows. */
  which: string;
  grantsAccess: boolean;
  /** The next keys after `key`; the first keys for an empty `key`. */
  keysAfter(key: string, most: number): string[];
  /** The row with this key, in JSON. */
  read(key: string): string | null;
  remove(key: string): void;
}

/** Rows that depend on others of the same call, such as a key on its organization, fit in a later pass. */
const MAX_PASSES = 4;
const EVENTS = ["INSERT", "UPDATE", "DELETE"] as const;
/** Message of a trigger if a shared row is changed past the cluster directory. */
const CLOSED = "a shared row may be changed only through the directory";

export class SharedRows {
  readonly #queries: Queries;
  readonly #tables: ReadonlyMap<string, Table>;
  readonly #setMode: (values: [Mode]) => void;
  readonly #changed: () => { tbl: string; key: string }[];
  readonly #forgetChanged: () => void;
  readonly #written: () => { all: number; shared: number };
  readonly #inserts = new Map<string, (values: [string]) => void>();

  /** Prevents direct changes of the tables on this connection. Outside of a transaction. */
  constructor(queries: Queries, tables: readonly SharedTable[]) {
    this.#queries = queries;
    const run = (sql: string) => rawStatement(queries, sql)([]);
    run("CREATE TEMP TABLE shared_mode (mode TEXT NOT NULL) STRICT");
    run("INSERT INTO temp.shared_mode VALUES ('closed')");
    run(
      "CREATE TEMP TABLE shared_changed (tbl TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY (tbl, key)) WITHOUT ROWID",
    );
    run("CREATE TEMP TABLE shared_count (n INTEGER NOT NULL) STRICT");
    run("INSERT INTO temp.shared_count VALUES (0)");
    this.#tables = new Map(tables.map((table) => [table.name, this.#watch(table)]));
    this.#setMode = rawStatement(queries, "UPDATE temp.shared_mode SET mode = ?");
    const changed = rawQuery<{ tbl: string; key: string }>(queries, "SELECT tbl, key FROM temp.shared_changed");
    this.#changed = () => changed([]);
    const forget = rawStatement(queries, "DELETE FROM temp.shared_changed");
    this.#forgetChanged = () => forget([]);
    const written = rawQuery<{ all: number; shared: number }>(
      queries,
      "SELECT total_changes() AS 'all', n AS shared FROM temp.shared_count",
    );
    this.#written = () => written([])[0] as { all: number; shared: number };
  }

  /**
   * Starts noting the changes of a work, within a dry run; the returned function returns them. Throws if the work changed rows that are not
   * shared.
   */
  try(): () => SharedRow[] {
    this.#forgetChanged();
    this.#setMode(["trying"]);
    const before = this.#written();
    return () => {
      const after = this.#written();
      this.#setMode(["closed"]);
      const changed = this.#changed();
      // SQLite also counts writes of triggers: each change of ours counts as one, and its key is noted once.
      const ours = (after.shared - before.shared) * 2 + changed.length;
      const mayWrite = trialOf(this.#queries)?.writesHere ?? false;
      if (!mayWrite && after.all - before.all > ours)
        throw new Error("a change of shared rows also wrote unshared rows");
      return changed.map(({ tbl, key }) => requireText({ tbl, key, row: this.#table(tbl).read(key) }));
    };
  }

  /**
   * Writes the given rows, each separately, and returns the rows that their tables refuse: for a value that this version does not know, a
   * name that another row has, an organization that is not here, or rows of this host that refer to a deleted one. The former version of a
   * refused row stays, unless it grants access. Within a transaction; unknown tables and columns are skipped.
   */
  bring(rows: readonly SharedRow[]): UnfitRow[] {
    if (rows.length === 0) return [];
    noteOthersWrites(this.#queries);
    this.#setMode(["bringing"]);
    let unfit = rows.filter(({ tbl }) => this.#tables.has(tbl)).map((row): UnfitRow => ({ ...row, reason: "" }));
    for (let pass = 0, before = Number.POSITIVE_INFINITY; pass < MAX_PASSES && unfit.length < before; pass++) {
      before = unfit.length;
      unfit = unfit.flatMap((row) => this.#put(row) ?? []);
    }
    unfit = this.#trade(unfit);
    for (const { tbl, key, row } of unfit) {
      const { grantsAccess, remove } = this.#table(tbl);
      if (row !== null && grantsAccess) remove(key);
    }
    this.#setMode(["closed"]);
    return unfit;
  }

  /** A row of this host; null: none. */
  read({ tbl, key }: Pick<SharedRow, "tbl" | "key">): string | null {
    return this.#tables.get(tbl)?.read(key) ?? null;
  }

  /** Names of the shared tables; referenced tables come first. */
  get names(): string[] {
    return [...this.#tables.keys()];
  }

  /** The next keys of a table, in order. */
  keysAfter(tbl: string, after: string, most: number): string[] {
    return this.#table(tbl).keysAfter(after, most);
  }

  /** All rows that there are. */
  all(): SharedRow[] {
    return [...this.#tables.values()].flatMap(({ name, columns, keys, which }) => {
      const select = `SELECT ${keyOf(keys, "")}, ${jsonOf(columns)} FROM main.${name} WHERE ${which}`;
      const rows = rawValues(this.#queries, select)([]);
      return rows.map(([key, row]) => ({ tbl: name, key: String(key), row: String(row) }));
    });
  }

  /** Returns null if the row fits. A failed statement changes nothing. */
  #put({ tbl, key, row }: SharedRow): UnfitRow | null {
    const table = this.#table(tbl);
    try {
      if (row === null) table.remove(key);
      else this.#insert(table, row);
      return null;
    } catch (error) {
      if (isDiskFull(error) || isDiskFailure(error)) throw error;
      return { tbl, key, row, reason: describeError(error) };
    }
  }

  /**
   * Handles rows that exchange unique names: removes all of them, then inserts them again. References remain valid, since the keys are
   * unchanged.
   */
  #trade(unfit: UnfitRow[]): UnfitRow[] {
    const isTrading = ({ tbl, key, row, reason }: UnfitRow) =>
      row !== null && reason.includes("UNIQUE constraint") && this.#table(tbl).read(key) !== null;
    const trading = unfit.filter(isTrading);
    if (trading.length < 2) return unfit;
    const run = (sql: string) => rawStatement(this.#queries, sql)([]);
    run("SAVEPOINT trade");
    run("PRAGMA defer_foreign_keys = ON");
    for (const { tbl, key } of trading) this.#table(tbl).remove(key);
    const isDone = trading.every((row) => this.#put(row) === null);
    if (!isDone) run("ROLLBACK TO trade");
    run("RELEASE trade");
    run("PRAGMA defer_foreign_keys = OFF");
    return isDone ? unfit.filter((row) => !trading.includes(row)) : unfit;
  }

  #table(name: string): Table {
    const table = this.#tables.get(name);
    if (!table) throw new Error(`${name} is not shared`);
    return table;
  }

  #watch({ name, but, grantsAccess = false }: SharedTable): Table {
    const queries = this.#queries;
    const info = rawQuery<{ name: string; pk: number }>(
      queries,
      `SELECT name, pk FROM pragma_table_info('${name}')`,
    )([]);
    const columns = info.map((column) => column.name);
    const keys = info
      .filter(({ pk }) => pk > 0)
      .sort((a, b) => a.pk - b.pk)
      .map((column) => column.name);
    if (keys.length === 0) throw new Error(`${name} has no key`);
    const sharedCondition = (side = "") => (but ? `${side}${but.column} <> '${but.is}'` : "1");
    for (const event of EVENTS) {
      const sides = event === "UPDATE" ? ["OLD", "NEW"] : [event === "DELETE" ? "OLD" : "NEW"];
      const notes = sides.map((side) => noteOf(name, keyOf(keys, `${side}.`)));
      const on = `AFTER ${event} ON main.${name}`;
      const isShared = sharedCondition(`${sides[0]}.`);
      const run = (sql: string) => rawStatement(queries, sql)([]);
      run(
        `CREATE TEMP TRIGGER shared_${name}_${event} ${on} WHEN ${isShared} AND (SELECT mode FROM shared_mode) = 'trying' BEGIN UPDATE shared_count SET n = n + 1; ${notes.join(" ")} END`,
      );
      run(
        `CREATE TEMP TRIGGER closed_${name}_${event} ${on} WHEN ${isShared} AND (SELECT mode FROM shared_mode) = 'closed' BEGIN SELECT RAISE(ABORT, '${CLOSED}: ${name}'); END`,
      );
    }
    const isIt = keys.map((key, index) => `${key} = json_extract(?1, '$[${index}]')`).join(" AND ");
    const read = rawValues(queries, `SELECT ${jsonOf(columns)} FROM main.${name} WHERE ${isIt}`);
    const next = (condition: string) =>
      rawValues(
        queries,
        `SELECT ${keyOf(keys, "")} FROM main.${name} WHERE ${sharedCondition()} AND ${condition} ORDER BY ${keys.join(", ")} LIMIT ?2`,
      );
    const parts = keys.map((_, index) => `json_extract(?1, '$[${index}]')`).join(", ");
    const [first, others] = [next("?1 = ''"), next(`(${keys.join(", ")}) > (${parts})`)];
    const remove = rawStatement(queries, `DELETE FROM main.${name} WHERE ${isIt}`);
    return {
      name,
      columns,
      keys,
      which: sharedCondition(),
      grantsAccess,
      keysAfter: (key, most) => (key === "" ? first : others)([key, most]).map(([found]) => String(found)),
      read: (key) => (read([key])[0]?.[0] as string | undefined) ?? null,
      remove: (key) => remove([key]),
    };
  }

  /** Inserts a row, or updates it. A row of another version has the columns that both versions have. */
  #insert({ name, columns, keys }: Table, row: string): void {
    const values = JSON.parse(row) as Record<string, unknown>;
    const both = columns.filter((column) => column in values);
    const updated = both.filter((column) => !keys.includes(column)).map((column) => `${column} = excluded.${column}`);
    // Without WHERE, SQLite would parse ON as part of a join.
    const statement = `INSERT INTO main.${name} (${both.join(", ")}) SELECT ${both.map((column) => `json_extract(?1, '$.${column}')`).join(", ")} WHERE true
      ON CONFLICT (${keys.join(", ")}) DO ${updated.length > 0 ? `UPDATE SET ${updated.join(", ")}` : "NOTHING"}`;
    const insert = this.#inserts.get(statement) ?? rawStatement(this.#queries, statement);
    this.#inserts.set(statement, insert);
    insert([row]);
  }
}

/** PostgreSQL texts cannot contain U+0000. Throws validation_failed. */
function requireText(row: SharedRow): SharedRow {
  if (!row.row?.includes("\\u0000")) return row;
  throw new ServiceError("validation_failed", { detail: "A name or another text has the character U+0000." });
}

/** Not OR IGNORE: in a trigger the statement that fires it decides the effect of a conflict. */
const noteOf = (name: string, key: string) =>
  `INSERT INTO shared_changed SELECT '${name}', ${key} WHERE NOT EXISTS (SELECT 1 FROM shared_changed WHERE tbl = '${name}' AND key = ${key});`;

const keyOf = (keys: readonly string[], side: string) => `json_array(${keys.map((key) => side + key).join(", ")})`;

const jsonOf = (columns: readonly string[]) =>
  `json_object(${columns.map((column) => `'${column}', ${column}`).join(", ")})`;
