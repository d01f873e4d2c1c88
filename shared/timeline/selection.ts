/**
 * Owns which records a query has to ask for, so that each of them becomes an item: what `typeOf` says, as lists of events. A page
 * is never empty because of what is left out.
 */
import { EVENTS } from "./events.ts";
import type { TimelineType } from "./item.ts";

/** Records of these events; those by which a person acted on the pages of the web are never asked for. */
export interface Selection {
  /** Where nothing was waited for, and nothing denied. */
  done: string[];
  /** Where the call waited, and nothing was denied. */
  waited: string[];
  /** Where nothing was waited for, and it was denied. */
  denied: string[];
  /** Where the call waited, and was denied. */
  waitedDenied: string[];
}

/** For these types, or all. */
export function selectionOf(types?: readonly TimelineType[]): Selection {
  const isWanted = (type: TimelineType | null) => type !== null && (types === undefined || types.includes(type));
  const eventsOf = (holds: (event: (typeof EVENTS)[string]) => boolean) =>
    Object.entries(EVENTS).flatMap(([name, told]) => (holds(told) ? [name] : []));
  const refusals = isWanted("refusal");
  return {
    done: eventsOf(({ type }) => isWanted(type)),
    waited: isWanted("wait") ? eventsOf(({ waits }) => waits !== undefined) : [],
    denied: refusals ? eventsOf(({ type }) => type !== null) : [],
    waitedDenied: refusals ? eventsOf(({ waits }) => waits !== undefined) : [],
  };
}
