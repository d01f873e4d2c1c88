/**
 * K-way merge of the lines of all hosts, as they arrive: each host has its own order, and the first of all next lines is emitted. A host
 * that breaks off is requested again from its position: it disconnects slow readers, for example when the records of others all come before
 * its own.
 */
import type { EventsReply, StreamEvent } from "../../core/call/operation.ts";
import { within } from "../../core/concurrency/published.ts";
import { byChain } from "./places.ts";
import { warningPing } from "./words.ts";

/** Most events in one batch. */
const AT_ONCE = 200;
/** A live host pings every 15 seconds. */
const SILENT_MS = 40_000;
/** Until a record comes. */
const MAX_TRIES = 3;

/** The lines of one host. */
export interface HostLines {
  chain: string;
  /** Opens the host's lines from the first, or after a record. */
  open(after: number | null): Promise<EventsReply>;
  reply: EventsReply;
}

export interface Order {
  /** Hosts that did not answer. */
  silent: readonly string[];
  order: "asc" | "desc";
  limit: number;
  slowMs: number;
  /** The reader is gone, or everything was emitted. */
  end(): void;
  /** It ended before all lines were emitted. */
  brokeOff(error: unknown): void;
  cut(): void;
}

interface Open extends HostLines {
  left: StreamEvent[];
  last: number | null;
  isOver: boolean;
}

export function linesOfAll(given: readonly HostLines[], about: Order): EventsReply {
  const parts = byChain(given).map((part): Open => ({ ...part, left: [], last: null, isOver: false }));
  const cancel = () => {
    about.end();
    for (const { reply } of parts) reply.cancel();
  };
  const cut = () => {
    about.cut();
    cancel();
  };
  return { events: told(parts, about, cancel), cancel, slow: { ms: about.slowMs, cut } };
}

/** Never throws. */
async function* told(parts: readonly Open[], about: Order, over: () => void): AsyncGenerator<readonly StreamEvent[]> {
  const { silent, order } = about;
  let { limit } = about;
  try {
    if (silent.length > 0) yield [warningPing(silent, "its records are not listed.")];
    while (limit > 0) {
      await Promise.all(parts.map(fill));
      const next = firsts(parts, order, Math.min(limit, AT_ONCE));
      if (next.length === 0) return;
      limit -= next.length;
      yield next;
    }
  } catch (error) {
    about.brokeOff(error);
    yield [{ id: null, data: { type: "error", code: "host_unreachable", retryable: true } }];
  } finally {
    over();
  }
}

/** Reads until there is a record or the end. Throws if the part breaks off permanently. */
async function fill(part: Open): Promise<void> {
  for (let tries = 1; part.left.length === 0 && !part.isOver; ) {
    try {
      await read(part);
    } catch (error) {
      part.reply.cancel();
      if (tries++ === MAX_TRIES) throw error;
      part.reply = await part.open(part.last);
    }
  }
}

async function read(part: Open): Promise<void> {
  const { done, value } = await within(part.reply.events.next(), SILENT_MS, "lines of a host");
  part.isOver = done === true;
  for (const event of done ? [] : value) {
    const { type, code } = event.data as { type?: string; code?: string };
    if (type === "error") throw new Error(`a host's lines ended: ${code}`);
    if (type !== undefined) continue;
    part.left.push(event);
    part.last = seqOf(event);
  }
}

/** As many events as can be emitted before one of the parts has to be read again. */
function firsts(parts: readonly Open[], order: "asc" | "desc", most: number): StreamEvent[] {
  const found: StreamEvent[] = [];
  while (found.length < most && parts.every(({ left, isOver }) => isOver || left.length > 0)) {
    const heads = parts.flatMap((part) => (part.left[0] ? [{ part, at: timeOf(part.left[0]) }] : []));
    const [first, ...others] = heads;
    if (!first) break;
    const isBefore = (a: string, b: string) => (order === "asc" ? a < b : a > b);
    const { part } = others.reduce((best, each) => (isBefore(each.at, best.at) ? each : best), first);
    found.push(...part.left.splice(0, 1));
  }
  return found;
}

const timeOf = ({ data }: StreamEvent) => (data as { at: string }).at;
const seqOf = ({ data }: StreamEvent) => (data as { seq: number }).seq;
