/**
 * Shared tail of a timeline for all its readers: the newest records, read and rendered once. Readers that are further behind read on their
 * own up to its start.
 */
import { LRUCache } from "lru-cache";
import type { StreamEvent } from "../../../core/call/operation.ts";
import type { AuditRow } from "../table.ts";

/** Maximum per slice. */
export const AT_ONCE = 100;
/** Events of a timeline; a reader that is behind reads older ones itself. */
const MAX_EVENTS = 200;
const MAX_CHARACTERS = 256 * 1024;
/** Cached slices of the tail, one per position of readers that are up to date. */
const MAX_SLICES = 8;

interface TailEvent {
  seq: number;
  event: StreamEvent;
  /** Whether the event is the end of its room. */
  isEnd: boolean;
}

/** Events that a reader gets in one piece. */
export interface Slice {
  /** The same list for all readers at the same position. */
  events: readonly StreamEvent[];
  /** Seq of the last of these events. */
  last: number;
  /** Whether the end of a room is among them. */
  hasEnd: boolean;
}

/** Data source of a timeline. */
export interface Source {
  /** The seq of the newest record of its chain. */
  head(): number;
  /** The seq of the last record in a closed day; the tail starts after it. */
  closedUpTo(): number;
  /** The records after `after`, up to `last` if given, in order. */
  read(range: { after: number; last?: number; limit: number }): AuditRow[];
  eventOf(row: AuditRow): StreamEvent;
}

export class SharedTails {
  readonly #all = new Map<string, { tail: SharedTail; users: number }>();

  /** The shared tail of a timeline, released when the signal aborts. */
  join(key: string, source: Source, signal: AbortSignal): SharedTail {
    const shared = this.#all.get(key) ?? { tail: new SharedTail(source), users: 0 };
    this.#all.set(key, shared);
    shared.users++;
    const leave = () => {
      shared.users--;
      if (shared.users === 0) this.#all.delete(key);
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    return shared.tail;
  }
}

export class SharedTail {
  readonly #source: Source;
  /** All records after `#from` and up to `#last`, in order. */
  #events: TailEvent[] = [];
  #from: number;
  #last: number;
  #characters = 0;
  /** By index of the first event; the most recently made slice is the last. */
  readonly #slices = new LRUCache<number, Slice>({ max: MAX_SLICES });

  constructor(source: Source) {
    this.#source = source;
    this.#from = source.head();
    this.#last = this.#from;
  }

  /** Events after the reader's last one, at least some of them; null if absent. */
  after(seq: number): Slice | null {
    if (seq < this.#from) {
      const rows = this.#source.read({ after: seq, last: this.#from, limit: AT_ONCE });
      if (rows.length > 0) return sliceOf(rows, this.#source.eventOf);
    }
    if ((this.#events.at(-1)?.seq ?? 0) <= seq) this.#grow(Math.max(seq, this.#last));
    let first = this.#events.length;
    while (first > 0 && (this.#events[first - 1] as TailEvent).seq > seq) first--;
    const found = this.#sliceAt(first);
    this.#cut();
    return found;
  }

  #sliceAt(first: number): Slice | null {
    const place = this.#events[first]?.seq;
    if (place === undefined) return null;
    const known = this.#slices.peek(place);
    if (known) return known;
    const slice = sliceOfTold(this.#events.slice(first, first + AT_ONCE));
    this.#slices.set(place, slice);
    return slice;
  }

  /** Reads records until it has reached the reader's position and some events after it. */
  #grow(seq: number): void {
    const head = this.#source.head();
    if (Math.min(seq, head) - this.#last > MAX_EVENTS || this.#last < this.#source.closedUpTo()) {
      // No reader has read for a while, or the timeline had no events for days.
      this.#events = [];
      this.#slices.clear();
      this.#characters = 0;
      this.#from = Math.min(seq, head);
      this.#last = this.#from;
    }
    for (let rows = AT_ONCE; rows === AT_ONCE && this.#last <= seq; ) {
      const more = this.#source.read({ after: this.#last, limit: AT_ONCE });
      rows = more.length;
      for (const row of more) this.#add(toldOf(row, this.#source.eventOf));
    }
  }

  #add(tailEvent: TailEvent): void {
    this.#slices.clear();
    this.#events.push(tailEvent);
    this.#last = tailEvent.seq;
    this.#characters += tailEvent.event.json?.length ?? 0;
  }

  #cut(): void {
    let cut = 0;
    while (this.#events.length - cut > MAX_EVENTS || (this.#characters > MAX_CHARACTERS && cut < this.#events.length)) {
      const { seq, event } = this.#events[cut++] as TailEvent;
      this.#from = seq;
      this.#characters -= event.json?.length ?? 0;
    }
    this.#events.splice(0, cut);
  }
}

/** The slice of an event stream for these records (at least one). */
export function sliceOf(rows: readonly AuditRow[], eventOf: Source["eventOf"]): Slice {
  return sliceOfTold(rows.map((row) => toldOf(row, eventOf)));
}

function toldOf(row: AuditRow, eventOf: Source["eventOf"]): TailEvent {
  const event = eventOf(row);
  return {
    seq: row.seq,
    event: { ...event, json: JSON.stringify(event.data) },
    isEnd: row.event === "room.destroyed" && row.outcome === "success",
  };
}

function sliceOfTold(tailEvents: readonly TailEvent[]): Slice {
  const [last] = tailEvents.slice(-1) as [TailEvent];
  return {
    events: tailEvents.map(({ event }) => event),
    last: last.seq,
    hasEnd: tailEvents.some(({ isEnd }) => isEnd),
  };
}
