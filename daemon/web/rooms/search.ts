/** The search on the page of rooms, from the address: text, number of rooms searched, and whether a room matches. Pure. */
import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";

const PAGE = 100;
/** A search covers all rooms, up to this many at first. */
const SEARCHED = 1000;
/** Limit of the number in a page's address. */
const MOST = 20_000;

export interface Search {
  text: string;
  /** Rooms per request, and in total. */
  page: number;
  most: number;
  /** The next `most`, if these are not enough. */
  more: number;
}

export function searchOf(query: URLSearchParams): Search {
  const text = query.get("q") ?? "";
  const page = text.trim() ? SEARCHED : PAGE;
  const requestedCount = Number(query.get("most"));
  const most = Math.max(page, Number.isInteger(requestedCount) ? Math.min(requestedCount, MOST) : 0);
  return { text, page, most, more: most + page };
}

export function matches(
  { room_id, host, labels }: Pick<RoomGlance, "room_id" | "host" | "labels">,
  text: string,
  hasHosts: boolean,
): boolean {
  const query = text.trim().toLowerCase();
  return [
    room_id,
    ...(hasHosts ? [host] : []),
    ...Object.entries(labels).map(([name, value]) => `${name}=${value}`),
  ].some((each) => each.toLowerCase().includes(query));
}
