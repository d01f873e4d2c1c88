/** Owns how the page of rooms is searched, as the address has it: for what, how many rooms are looked at, and whether one of them fits. Pure. */
import type { RoomGlance } from "../../../shared/api/room-overview.ts";

const PAGE = 100;
/** Who searches has all of them looked at, up to so many at first. */
const SEARCHED = 1000;
/** As many as the address of a page may ask for. */
const MOST = 20_000;

export interface Search {
  text: string;
  /** Rooms that are asked for at once, and in all. */
  page: number;
  most: number;
  /** What is asked for where these are not enough. */
  more: number;
}

export function searchOf(query: URLSearchParams): Search {
  const text = query.get("q") ?? "";
  const page = text.trim() ? SEARCHED : PAGE;
  const asked = Number(query.get("most"));
  const most = Math.max(page, Number.isInteger(asked) ? Math.min(asked, MOST) : 0);
  return { text, page, most, more: most + page };
}

export function matches(
  { room_id, host, labels }: Pick<RoomGlance, "room_id" | "host" | "labels">,
  text: string,
  hasHosts: boolean,
): boolean {
  const wanted = text.trim().toLowerCase();
  return [
    room_id,
    ...(hasHosts ? [host] : []),
    ...Object.entries(labels).map(([name, value]) => `${name}=${value}`),
  ].some((each) => each.toLowerCase().includes(wanted));
}
