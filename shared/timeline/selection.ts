/**
 * Selects the records of a query such that each becomes an item: the rules of `typeOf`, as lists of events. A page is never empty because
 * of filtered records.
 */
import { EVENTS } from "./events.ts";
import type { TimelineType } from "./item.ts";

/** Events of the records to query; records of a person's actions on the pages of the web are always excluded. */
export interface Selection {
  /** Events of calls that did not wait and were not denied. */
  done: string[];
  /** Events of calls that waited and were not denied. */
  waited: string[];
  /** Events of calls that did not wait and were denied. */
  denied: string[];
  /** Events of calls that waited and were denied. */
  waitedDenied: string[];
}

/** For these types, or all. */
export function selectionOf(types?: readonly TimelineType[]): Selection {
  const isWanted = (type: TimelineType | null) => type !== null && (types === undefined || types.includes(type));
  const eventsOf = (holds: (event: (typeof EVENTS)[string]) => boolean) =>
    Object.entries(EVENTS).flatMap(([name, definition]) => (holds(definition) ? [name] : []));
  const refusals = isWanted("refusal");
  return {
    done: eventsOf(({ type }) => isWanted(type)),
    waited: isWanted("wait") ? eventsOf(({ waits }) => waits !== undefined) : [],
    denied: refusals ? eventsOf(({ type }) => type !== null) : [],
    waitedDenied: refusals ? eventsOf(({ waits }) => waits !== undefined) : [],
  };
}
