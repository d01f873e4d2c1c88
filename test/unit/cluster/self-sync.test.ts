/** A host's rows in the shared directory, compared with its rooms: the number of statements, and the differences found. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { givePlacement } from "../../../daemon/cluster/moved-use.ts";
import {
  deletePlacement,
  insertPlacement,
  placementOfRoom,
  putHost,
  usesOf,
} from "../../../daemon/cluster/placements.ts";
import {
  compare,
  differences,
  inParts,
  lostNames,
  type Self,
  type Sources,
} from "../../../daemon/cluster/self-sync.ts";
import type { PlacementRow } from "../../../daemon/cluster/table.ts";
import { makeHeld } from "../../../daemon/compose/quota-use.ts";
import { inPieces, wholly } from "../../../daemon/core/loop/index.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { arrivedRooms, misplacedRooms, placedWithoutRoom, unsettledRooms } from "../../../daemon/domain/rooms/index.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const SELF: Self = { host_id: "host-1", address: "a:1", url: "http://a", labels: {} };
const HELD = makeHeld("host-1");
const SOURCES: Sources = {
  certificate: "certificate",
  load: () => {
    throw new Error("not asked here");
  },
  used: HELD.of,
  allUsed: HELD.all,
  unsettled: unsettledRooms,
  misplaced: misplacedRooms,
  placedWithoutRoom,
  arrived: arrivedRooms,
  arriving: () => new Set(),
  leaving: () => new Set(),
};
const MAX_TURN_MS = 10;
const AT = "2026-01-01T00:00:00.000Z";

let connection: Connection;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  connection.execute("PRAGMA foreign_keys = OFF");
  putHost(connection.queries, { ...SELF, state: "active", joined_at: AT, certificate: "certificate" });
});
afterEach(() => {
  vi.restoreAllMocks();
  connection.close();
});

const uid = (n: number) => `rom_${n}` as RoomUid;
const org = (n: number) => `org_${n % 300}` as OrgId;

function addRoom(n: number, epoch = 1): void {
  connection.execute(`INSERT INTO rooms (room_uid, room_id, org_id, host_id, state, status_reason, status_message,
      last_transition_at, labels, drive_limit_bytes, created_at, updated_at, created_by_type, created_by_id, keep_drive, epoch)
    VALUES ('${uid(n)}', 'room-${n}', '${org(n)}', 'host-1', 'active', '', '', '${AT}', '{"a":"b"}', 1, '${AT}', '${AT}',
      'key', 'key_1', 0, ${epoch})`);
}
function place(n: number, { host_id = "host-1", epoch = 1, room = n } = {}): void {
  const labels = { a: "b" };
  const named = { room_uid: uid(n), org_id: org(room), room_id: `room-${room}` };
  insertPlacement(connection.queries, { ...named, host_id, epoch, labels, created_at: AT });
}
/** Corrects the differences; returns their number. */
function settle(sources = SOURCES, self = SELF): number {
  const found = wholly(compare(connection.queries, self.host_id, sources));
  let count = 0;
  for (const suspects of inParts(found)) {
    const changes = differences(connection.queries, self, sources, suspects);
    for (const change of changes) change(connection.queries);
    count += changes.length;
  }
  return count;
}
const suspectRooms = () => wholly(compare(connection.queries, "host-1", SOURCES)).rooms;

test("compares 1,000 rooms of 300 organizations in a few statements, and finds no false difference", () => {
  for (let n = 0; n < 1_000; n++) {
    addRoom(n);
    place(n);
  }
  expect(settle()).toBe(300);
  const asked = (["query", "prepare", "run"] as const).map((name) => vi.spyOn(Database.prototype, name));
  expect(settle()).toBe(0);
  const statements = asked.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  expect(statements).toBeGreaterThan(3);
  expect(statements).toBeLessThan(25);
});

test("compares and corrects 20,000 rooms of 500 organizations in steps of milliseconds", async () => {
  const room = (n: string) => `printf('rom_%05d', ${n})`;
  const some = (first: number, count: number) =>
    `WITH RECURSIVE n (i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i < ${first + count - 1})`;
  connection.execute(`${some(0, 20_000)} INSERT INTO rooms (room_uid, room_id, org_id, host_id, state, status_reason, status_message,
      last_transition_at, labels, drive_limit_bytes, created_at, updated_at, created_by_type, created_by_id, keep_drive, epoch)
    SELECT ${room("i")}, 'room-' || i, 'org_' || (i % 500), 'host-1', 'active', '', '', '${AT}', '{}', 1, '${AT}', '${AT}', 'key', 'key_1', 0, 1
      FROM n`);
  connection.execute(`${some(1_000, 21_000)} INSERT INTO placements (room_uid, org_id, room_id, labels, created_at, host_id, epoch)
    SELECT ${room("i")}, 'org_' || (i % 500), 'room-' || i, '{}', '${AT}', 'host-1', 1 FROM n`);
  const corrected: number[] = [];
  const longest = await longestTurn(async () => {
    const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
    const found = await inPieces(compare(connection.queries, "host-1", SOURCES), { next: turn });
    expect([found.rooms.length, found.orgs.length]).toEqual([3_000, 500]);
    for (const suspects of inParts(found)) {
      await turn();
      const changes = differences(connection.queries, SELF, SOURCES, suspects);
      await turn();
      for (const change of changes) change(connection.queries);
      corrected.push(changes.length);
    }
  });
  expect([corrected.length, corrected.reduce((sum, each) => sum + each)]).toEqual([300, 3_500]);
  expect(settle()).toBe(0);
  expect(longest).toBeLessThan(boundOf(MAX_TURN_MS));
});

describe("corrects", () => {
  beforeEach(() => {
    for (const n of [1, 2]) {
      addRoom(n);
      place(n);
    }
    settle();
  });
  const owner = (n: number) => {
    const { host_id, epoch } = placementOfRoom(connection.queries, uid(n)) ?? {};
    return [host_id, epoch];
  };

  test("a room missing in the directory, and one with an older epoch or on another host there", () => {
    addRoom(3, 4);
    addRoom(4, 3);
    place(4, { host_id: "host-2", epoch: 2 });
    settle();
    expect([owner(3), owner(4)]).toEqual([
      ["host-1", 4],
      ["host-1", 3],
    ]);
    expect(settle()).toBe(0);
  });

  test("a room that ended on this host, but not one that is arriving", () => {
    place(5);
    place(6);
    settle({ ...SOURCES, arriving: () => new Set([uid(6)]) });
    expect([owner(5), owner(6)]).toEqual([
      [undefined, undefined],
      ["host-1", 1],
    ]);
  });

  test("neither a room that may be another host's by now, nor one with a newer epoch on another host", () => {
    addRoom(7);
    addRoom(8);
    place(8, { host_id: "host-2", epoch: 2 });
    settle({ ...SOURCES, leaving: () => new Set([uid(7)]) });
    expect([owner(7), owner(8)]).toEqual([
      [undefined, undefined],
      ["host-2", 2],
    ]);
  });

  test("a room that another host has in the same epoch: it is reported as contested, once", () => {
    addRoom(11, 2);
    place(11, { host_id: "host-2", epoch: 2 });
    settle();
    expect([owner(11), placementOfRoom(connection.queries, uid(11))?.contested_by]).toEqual([["host-2", 2], "host-1"]);
    expect(settle()).toBe(0);
  });

  test("a room whose name is another room's: it loses the name and is not placed", () => {
    addRoom(9);
    place(10, { host_id: "host-2", room: 9 });
    settle();
    expect(owner(9)).toEqual([undefined, undefined]);
    expect(lostNames(connection.queries, "host-1", SOURCES, suspectRooms())).toEqual([
      { room_uid: uid(9), org_id: org(9), room_id: "room-9", by: { room_uid: uid(10), host_id: "host-2" } },
    ]);
  });

  test("a moving room, counted once: on the source until its placement changes, then on the destination", () => {
    const next = makeHeld("host-2");
    const atNext: Sources = { ...SOURCES, used: next.of, allUsed: next.all, arriving: () => new Set([uid(30)]) };
    const settleNext = () => settle(atNext, { ...SELF, host_id: "host-2" });
    const counts = () => [HELD, next].map((held) => held.of(connection.queries, org(30)).rooms);
    const reported = () =>
      ["host-1", "host-2"].map((host) => usesOf(connection.queries, host).find((use) => use.org_id === org(30))?.rooms);
    const become = (set: string) => connection.execute(`UPDATE rooms SET ${set} WHERE room_uid = '${uid(30)}'`);
    settleNext();
    addRoom(30);
    addRoom(330);
    place(30);
    place(330);
    settle();
    become(`branching = '{"kind":"move","to":"host-2","epoch":1,"key_id":"key_1","claiming":true}'`);
    expect([counts()[0], reported(), settle()]).toEqual([2, [2, undefined], 0]);

    const placed = placementOfRoom(connection.queries, uid(30)) as PlacementRow;
    givePlacement(connection.queries, placed, { host_id: "host-2", epoch: 2 }, HELD.of);
    expect([counts()[0], reported(), settle()]).toEqual([1, [1, 1], 0]);
    // From here on as the next host sees it, which has no row yet.
    become("state = 'destroyed', branching = NULL");
    connection.execute(`UPDATE rooms SET state = 'destroyed' WHERE room_uid = '${uid(330)}'`);
    expect([counts()[1], settleNext(), reported()]).toEqual([1, 0, [1, 1]]);
    become("state = 'active', epoch = 2");
    expect([settleNext(), reported()[1]]).toEqual([1, 1]);
    expect(placementOfRoom(connection.queries, uid(30))?.moved_use).toBeNull();
    expect(settleNext()).toBe(0);
  });

  test("the counts of organizations on this host, each counted on its own", () => {
    addRoom(11);
    addRoom(311);
    connection.execute(`INSERT INTO org_credits (org_id, used_micro) VALUES ('${org(11)}', 5000000)`);
    connection.execute(`UPDATE rooms SET state = 'destroyed' WHERE room_uid = '${uid(2)}'`);
    settle();
    const uses = new Map(usesOf(connection.queries, "host-1").map(({ org_id, host_id: _, ...use }) => [org_id, use]));
    expect(uses.get(org(11))).toMatchObject({ rooms: 2, used_micro: 5_000_000 });
    for (const n of [1, 2, 11]) expect(uses.get(org(n))).toEqual(HELD.of(connection.queries, org(n)));
    deletePlacement(connection.queries, uid(1));
    expect(settle()).toBe(1);
  });
});
