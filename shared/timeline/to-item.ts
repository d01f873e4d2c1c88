/**
 * Maps an audit record to at most one item of a room's timeline. Pure, and without imports of code: the service makes pages of it, and
 * subscribers of the event stream make the same items.
 */
import type { AuditRecord } from "../api/audit.ts";
import { EVENTS, type Facts } from "./events.ts";
import type { TimelineItem, TimelineType } from "./item.ts";
import { line } from "./words.ts";

/** The relevant fields of a record. */
export type Recorded = Pick<
  AuditRecord,
  "seq" | "event" | "outcome" | "at" | "agent_id" | "source" | "status" | "error_code" | "duration_ms"
> & { details: Facts };

const MAX_TO = 16;
const TRACE_ID = /^[\da-f]{32}$/;

/** Null for a read-only call, for a person's action on the pages of the web, and for an event outside of a room. */
export function toItem(record: Recorded): TimelineItem | null {
  const type = typeOf(record);
  const definition = EVENTS[record.event];
  if (type === null || !definition) return null;
  const { seq, agent_id, outcome, error_code } = record;
  const { facts, count } = factsOf(record.details);
  const isWait = type === "wait";
  const isSpan = isWait || definition.span === true;
  const lane = definition.lane ?? "agent";
  const text = (isWait ? definition.waits : undefined)?.(facts) ?? definition.say(facts);
  const times = count > 1 ? `, ${count} times` : "";
  const refused = error_code === null ? "" : `: ${error_code}`;
  const name = definition.ref?.(facts) ?? null;
  return {
    seq,
    lane: lane === "agent" && agent_id === null ? "room" : lane,
    agent_id,
    kind: isSpan ? "span" : "mark",
    type,
    ...(isSpan ? spanOf(record) : { at: record.at, until: null }),
    outcome,
    title: line(`${text}${times}${refused}`),
    to: toOf(facts),
    ref: name,
    exit_code: typeof facts.exit_code === "number" ? facts.exit_code : null,
    trace_id: typeof facts.trace_id === "string" && TRACE_ID.test(facts.trace_id) ? facts.trace_id : null,
  };
}

/** The type of a record's item; null if it has none. `selection.ts` has the same rules for a query. */
export function typeOf({ event, outcome, source, details }: Recorded): TimelineType | null {
  const definition = Object.hasOwn(EVENTS, event) ? EVENTS[event] : undefined;
  if (!definition || source === "web") return null;
  const waited = typeof details.wait_ms === "number";
  const type = !waited ? definition.type : definition.waits ? "wait" : null;
  return type !== null && outcome === "denied" ? "refusal" : type;
}

/** The time of a call's record is the call's start; that of a record without a call is the end of the event. */
function spanOf({ at, duration_ms, status }: Recorded): { at: string; until: string } {
  const ms = Date.parse(at);
  const duration = Math.round(duration_ms ?? 0);
  const begin = status === null ? ms - duration : ms;
  return { at: new Date(begin).toISOString(), until: new Date(begin + duration).toISOString() };
}

/** For records that were counted together: the facts of the last one, and their number. */
function factsOf(details: Facts): { facts: Facts; count: number } {
  const count = typeof details.count === "number" ? details.count : 1;
  const isCounted = typeof details.last === "object" && details.last !== null && "first_at" in details;
  return { facts: isCounted ? (details.last as Facts) : details, count };
}

function toOf({ to, destination, destinations }: Facts): string[] {
  const named = [to, destinations].find(Array.isArray) ?? (typeof destination === "string" ? [destination] : []);
  return named.filter((each): each is string => typeof each === "string" && each !== "*").slice(0, MAX_TO);
}
