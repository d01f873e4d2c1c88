/**
 * Owns looking through messages from a place on: some at a time, so that neither a long history nor large payloads hold up
 * others, and what was looked at in vain is not looked at again.
 */
import type { InputOf } from "../../../shared/api/contract.ts";
import type { agentWait } from "../../../shared/api/fabric.ts";
import { nextTurn } from "../../core/turn.ts";
import { matchesTopic } from "../agents/index.ts";
import type { Delivered } from "./inbox-store.ts";
import type { MessageRow } from "./table.ts";

export type Row = MessageRow & Partial<Pick<Delivered, "attempts" | "delivery_state">>;
type Filter = Pick<InputOf<typeof agentWait>, "topic" | "kind" | "source">;

/** Some rows, and whether there are more after them. */
export interface Part {
  rows: Row[];
  more: boolean;
}

const ROWS_AT_ONCE = 100;
/** A body of so many payload bytes is enough for one answer; the rest is the next page. */
const MOST_BYTES = 8 * 1024 ** 2;

export class Scan {
  #from: number;
  readonly #limit: number;
  readonly #filter: Filter;
  readonly #read: (after: number, limit: number) => Row[];

  /** `read` gives rows in order of seq, those after a place. */
  constructor(after: number, limit: number, filter: Filter, read: (after: number, limit: number) => Row[]) {
    this.#from = after;
    this.#limit = limit;
    this.#filter = filter;
    this.#read = read;
  }

  /** The next rows; null when there are none as yet, "further" when they are to be looked for further on. */
  next(): Part | null | "further" {
    const rows: Row[] = [];
    let bytes = 0;
    for (let from = this.#from; ; ) {
      const most = takesAll(this.#filter) ? Math.min(ROWS_AT_ONCE, this.#limit + 1 - rows.length) : ROWS_AT_ONCE;
      const read = this.#read(from, most);
      for (const row of read) {
        if (!lets(this.#filter, row)) continue;
        bytes += row.size_bytes;
        if (rows.length === this.#limit || (rows.length > 0 && bytes > MOST_BYTES)) return { rows, more: true };
        rows.push(row);
      }
      from = read.at(-1)?.seq ?? from;
      if (rows.length === 0) this.#from = from;
      if (read.length < most) return rows.length === 0 ? null : { rows, more: false };
      if (rows.length === 0) return "further";
      if (!takesAll(this.#filter)) return { rows, more: true };
    }
  }

  /** Gets past what has been there for long, and lets others be answered meanwhile. */
  async catchUp(signal: AbortSignal): Promise<void> {
    if (takesAll(this.#filter)) return;
    while (!signal.aborted && this.next() === "further") await nextTurn();
  }

  /** The next rows, or null. */
  look(): Part | null {
    for (;;) {
      const found = this.next();
      if (found !== "further") return found;
    }
  }
}

/** Whether a filter lets a row through. */
function lets({ topic, kind, source }: Filter, row: Row): boolean {
  if (kind !== undefined && row.kind !== kind) return false;
  if (source !== undefined && row.source !== source) return false;
  return topic === undefined || (row.topic !== null && matchesTopic(topic, row.topic));
}

export function takesAll({ topic, kind, source }: Filter): boolean {
  return topic === undefined && kind === undefined && source === undefined;
}
