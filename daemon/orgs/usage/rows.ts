/**
 * Owns how finely a day is told: rooms and agents can be made without end, and usage is kept for good. Beyond so many rows of an
 * organization's day what is used goes to its key alone, and beyond twice as many to nobody; the sums stay what they are.
 */
import type { RoomUid } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { listPlaces } from "./store.ts";
import type { UsageRow } from "./table.ts";

const MOST_ROWS_A_DAY = 10_000;
/** Days of organizations whose rows are remembered. */
const MOST_DAYS = 64;

const NO_ROOM = { room_uid: "" as RoomUid, agent_id: "" };

export class DayRows {
  readonly #most: number;
  readonly #known = new Map<string, Set<string>>();

  constructor(most = MOST_ROWS_A_DAY) {
    this.#most = most;
  }

  /** The row to which this is added, within its transaction. */
  placed(queries: Queries, row: UsageRow): UsageRow {
    const names = this.#namesOf(queries, row);
    const ofKey = { ...row, ...NO_ROOM };
    const finest = [row, ofKey].find((each, level) => {
      return names.has(nameOf(each)) || names.size < this.#most * (level + 1);
    });
    const placed = finest ?? { ...ofKey, key_id: "" };
    names.add(nameOf(placed));
    return placed;
  }

  #namesOf(queries: Queries, { org_id, day }: UsageRow): Set<string> {
    const name = `${org_id} ${day}`;
    const known = this.#known.get(name) ?? new Set(listPlaces(queries, org_id, day).map(nameOf));
    // The one that was asked for last comes last.
    this.#known.delete(name);
    this.#known.set(name, known);
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > MOST_DAYS) this.#known.delete(oldest);
    return known;
  }
}

function nameOf({ room_uid, agent_id, key_id }: Pick<UsageRow, "room_uid" | "agent_id" | "key_id">): string {
  return `${room_uid} ${agent_id} ${key_id}`;
}
