/**
 * Limits the granularity of a day's usage: rooms and agents can be created without end, and usage is kept permanently. Above
 * MAX_ROWS_A_DAY rows of an organization's day, usage is attributed to the key alone, and above twice as many to no key; the sums are
 * unaffected.
 */
import type { RoomUid } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { TransactionMap } from "../../../db/transaction-map.ts";
import { add } from "./amounts.ts";
import { countRows, hasRow } from "./store.ts";
import type { UsageRow } from "./table.ts";

const MAX_ROWS_A_DAY = 10_000;
/** Maximum number of cached days of organizations, and of cached rows. */
const MAX_REMEMBERED = 10_000;

const NO_ROOM = { room_uid: "" as RoomUid, agent_id: "" };

export class DayRows {
  readonly #most: number;
  readonly #counts: TransactionMap<string, number>;
  /** Existing rows, which are never removed. */
  readonly #known: TransactionMap<string, true>;

  constructor(database: Pick<Database, "undo">, most = MAX_ROWS_A_DAY) {
    this.#most = most;
    this.#counts = new TransactionMap(database);
    this.#known = new TransactionMap(database);
  }

  /** Rows to which the usage counted by a transaction is added, within it. */
  placed(queries: Queries, increments: Iterable<UsageRow>): Iterable<UsageRow> {
    const finest = new Map<string, UsageRow>();
    for (const row of increments) addTo(finest, row);
    const placed = new Map<string, UsageRow>();
    // One organization's day after the other: none is read twice.
    for (const [, row] of [...finest].sort(([a], [b]) => (a < b ? -1 : 1)))
      addTo(placed, this.#place(queries, row, placed));
    return placed.values();
  }

  #place(queries: Queries, row: UsageRow, placed: Map<string, UsageRow>): UsageRow {
    const day = `${row.org_id} ${row.day}`;
    const count = this.#counts.get(day) ?? countRows(queries, row.org_id, row.day);
    const isThere = (each: UsageRow) => this.#has(queries, nameOf(each), each, placed);
    const ofKey = { ...row, ...NO_ROOM };
    const finest = [row, ofKey].find((each, level) => count < this.#most * (level + 1) || isThere(each));
    const place = finest ?? { ...ofKey, key_id: "" };
    const isNew = !isThere(place);
    if (isNew || this.#counts.get(day) === undefined) remember(this.#counts, day, count + Number(isNew));
    return place;
  }

  #has(queries: Queries, name: string, row: UsageRow, placed: Map<string, UsageRow>): boolean {
    if (placed.has(name) || this.#known.get(name)) return true;
    if (!hasRow(queries, row)) return false;
    remember(this.#known, name, true);
    return true;
  }
}

function remember<Value>(map: TransactionMap<string, Value>, key: string, value: Value): void {
  map.set(key, value);
  const oldest = map.oldest();
  if (oldest !== undefined && map.size > MAX_REMEMBERED) map.delete(oldest);
}

function addTo(sums: Map<string, UsageRow>, row: UsageRow): void {
  const name = nameOf(row);
  const sum = sums.get(name);
  if (sum) add(sum, row);
  else sums.set(name, row);
}

function nameOf({ org_id, day, room_uid, agent_id, key_id }: UsageRow): string {
  return `${org_id} ${day} ${room_uid} ${agent_id} ${key_id}`;
}
