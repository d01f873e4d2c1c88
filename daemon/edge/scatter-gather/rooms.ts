/**
 * Merges pages of rooms. Every host has the same order, by room_uid, and the same cursors: the whole page is requested from each, and the
 * first rooms of all form the page. For a host that does not answer, its rooms and their names are known from the cluster directory.
 */
import { DEFAULT_PAGE, type InputOf, type OutputOf } from "../../../shared/api/contract.ts";
import type { RoomGlance, roomOverview } from "../../../shared/api/overview/room-overview.ts";
import type { RoomRecord, roomList } from "../../../shared/api/rooms.ts";
import type { PlacedRoom } from "../../cluster/directory.ts";
import type { Steps } from "../../core/loop/index.ts";
import { afterRoom, compareRooms, cursorAfterRoom, isOfPage } from "../../domain/rooms/index.ts";
import type { Chain, HostPart, KnownRoom, Merging, Whole } from "./rule.ts";
import { withWarnings } from "./words.ts";

const PATIENCE_MS = 1000;
const MISSING = "only names, labels and times of its rooms are known, and destroyed rooms are not listed.";

/** If `input.host` names a host, no other host is queried. */
const partOf = ({ host, is_own }: Chain, { input }: { input: InputOf<typeof roomList> }) =>
  input.host === undefined || is_own || input.host === host ? input : null;

export const listOfRooms: Merging<typeof roomList> = {
  patienceMs: PATIENCE_MS,
  part: partOf,
  known: roomsOfPage,
  merge: (own, others, about) => pageOf<RoomRecord, OutputOf<typeof roomList>>(own, others, about, unknownRoom),
};

export const overviewOfRooms: Merging<typeof roomOverview> = {
  patienceMs: PATIENCE_MS,
  part: partOf,
  known: roomsOfPage,
  merge: (own, others, about) => pageOf<RoomGlance, OutputOf<typeof roomOverview>>(own, others, about, unknownGlance),
};

type RoomListRequest = Pick<Whole<typeof roomList>, "caller" | "input" | "silent" | "known" | "ownerOf">;

/** The first rooms of these hosts that may be on the page, and one more. */
function* roomsOfPage(
  { caller, input, silent }: Pick<RoomListRequest, "caller" | "input" | "silent">,
  placedOn: (hostId: string) => Iterable<PlacedRoom[]>,
): Steps<KnownRoom[]> {
  const { limit = DEFAULT_PAGE, order } = input;
  const after = afterRoom(caller.org_id, order, input.cursor);
  let found: KnownRoom[] = [];
  const first = () => found.sort((a, b) => compareRooms(order, a.room_uid, b.room_uid)).slice(0, limit + 1);
  for (const host of silent) {
    for (const page of placedOn(host)) {
      for (const room of page) if (isOfPage(room, caller, input, after)) found.push({ ...room, host });
      if (found.length > 2 * limit) found = first();
      yield;
    }
  }
  return first();
}

interface Page<Item> {
  org_id: string;
  items: Item[];
  next_cursor: string | null;
}

function pageOf<Item extends { room_uid: string }, Body extends Page<Item>>(
  own: HostPart<Body>,
  others: readonly HostPart<Body>[],
  { caller, input, silent, known, ownerOf }: RoomListRequest,
  unknown: (room: PlacedRoom, host: string) => Item,
): Body {
  const { limit = DEFAULT_PAGE, order } = input;
  const found = new Map<string, Item>();
  for (const { host, body } of [own, ...others]) {
    for (const item of body.items) {
      // A moved room may have a row on both hosts: the placement decides.
      const isMoved = found.has(item.room_uid) && ownerOf(item.room_uid) !== host;
      if (!isMoved) found.set(item.room_uid, item);
    }
  }
  for (const { host, ...room } of known) if (!found.has(room.room_uid)) found.set(room.room_uid, unknown(room, host));
  const items = [...found.values()].sort((a, b) => compareRooms(order, a.room_uid, b.room_uid));
  const isMore = items.length > limit || [own, ...others].some(({ body }) => body.next_cursor !== null);
  const shown = items.slice(0, limit);
  const last = shown.at(-1);
  return {
    ...own.body,
    items: shown,
    next_cursor: isMore && last ? cursorAfterRoom(caller.org_id, order, last.room_uid) : null,
    ...withWarnings(silent, MISSING),
  };
}

const unreachableNote = (host: string) =>
  `Its host ${host} does not answer: only the room's name, labels and time are known.`;

function unknownRoom({ room_id, room_uid, org_id, labels, created_at }: PlacedRoom, host: string): RoomRecord {
  return {
    ...{ room_id, room_uid, org_id, host, labels, created_at },
    state: "active",
    status: { reason: "host_unreachable", message: unreachableNote(host), last_transition_at: created_at },
    sandbox_count: 0,
    drive: { used_bytes: 0, limit_bytes: 0, file_count: 0 },
    updated_at: created_at,
    expires_at: null,
    created_by: { type: "unknown", id: "" },
    warnings: [unreachableNote(host)],
  };
}

function unknownGlance({ room_id, room_uid, labels, created_at }: PlacedRoom, host: string): RoomGlance {
  return {
    ...{ room_id, room_uid, host, labels, created_at },
    state: "active",
    ...{ agents: 0, running: 0, blocked: 0, in_circle: false, truncated: false, messages_last_minute: 0 },
    drive: { used_bytes: 0, limit_bytes: 0 },
    cost: null,
    expires_at: null,
    warnings: [unreachableNote(host)],
  };
}
