/** Rooms that were made or ended during a backup: every row gets one drive, or is ended. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths, type Paths } from "../../../../daemon/core/config/paths.ts";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { insertOrg } from "../../../../daemon/domain/orgs/store.ts";
import { roomsEndedSince, settleRooms } from "../../../../daemon/domain/rooms/restore-cleanup.ts";
import { getRoom, insertRoom, updateRoom } from "../../../../daemon/domain/rooms/store.ts";
import type { RoomRow } from "../../../../daemon/domain/rooms/table.ts";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";

const ORG = "org_1" as OrgId;
const AT = "2026-01-01T00:00:00.000Z";
let root: string;
let paths: Paths;
let database: Database;
let copy: Connection;

function openOne(): Connection {
  const connection = openConnection(":memory:");
  migrate(connection);
  insertOrg(connection.queries, { org_id: ORG, name: "org", plan: "free", created_at: AT });
  return connection;
}
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "roomd-lost-"));
  paths = makePaths({ data_dir: join(root, "data"), runtime_dir: join(root, "run") });
  copy = openOne();
  database = makeDatabase(copy);
});
afterEach(async () => {
  await database.close();
  rmSync(root, { recursive: true });
});

const uid = (name: string) => `rom_${name}` as RoomUid;
function addRoom(to: Connection, name: string, state: RoomRow["state"] = "active", more: Partial<RoomRow> = {}): void {
  insertRoom(to.queries, {
    ...{ room_uid: uid(name), room_id: name, org_id: ORG, host_id: "host", labels: {} },
    ...{ state, status_reason: state, status_message: "", last_transition_at: AT, created_at: AT, updated_at: AT },
    ...{ drive_limit_bytes: 1, drive_until_at: null, keep_drive: true, expires_at: null },
    ...{ created_by_type: "key", created_by_id: "kid_1" },
    ...more,
  });
}
function makeDrive(place: string, text: string): void {
  mkdirSync(join(place, "drive"), { recursive: true });
  writeFileSync(join(place, "drive/file"), text);
}
const fileAt = (place: string) => (existsSync(place) ? readFileSync(join(place, "drive/file"), "utf8") : null);
const placesOf = (name: string) => [fileAt(paths.room(uid(name))), fileAt(paths.retired_room(uid(name)))];

test("a drive found at both places goes to one: else the room's end fails forever", async () => {
  for (const name of ["stays", "ended", "going"]) {
    addRoom(copy, name, name === "going" ? "destroying" : "active");
    makeDrive(paths.room(uid(name)), "first");
    makeDrive(paths.retired_room(uid(name)), "later");
  }
  expect(await settleRooms(database, paths, [{ room_uid: uid("ended"), keep_drive: true }])).toEqual(["ended"]);
  expect(placesOf("stays")).toEqual(["first", null]);
  expect(placesOf("going")).toEqual(["first", null]);
  // The retired copy is the later one: no call changes a retired drive.
  expect(placesOf("ended")).toEqual([null, "later"]);
  const stateOf = (name: string) => getRoom(copy.queries, uid(name))?.state;
  expect(["stays", "going", "ended"].map(stateOf)).toEqual(["active", "destroying", "destroying"]);
});

test("a room whose drive was being deleted during the copy is ended, with its remainder", async () => {
  addRoom(copy, "halved");
  makeDrive(paths.room(uid("halved")), "half");
  addRoom(copy, "kept", "destroyed", { drive_until_at: AT });
  makeDrive(paths.retired_room(uid("kept")), "kept");
  makeDrive(paths.room(uid("late")), "no row");
  expect(await settleRooms(database, paths, [{ room_uid: uid("halved"), keep_drive: false }])).toEqual(["halved"]);
  expect(getRoom(copy.queries, uid("halved"))).toMatchObject({ state: "destroying", keep_drive: false });
  expect(placesOf("kept")).toEqual([null, "kept"]);
  expect(placesOf("late")).toEqual([null, null]);
});

test("rooms that ended since the copy are reported, with whether their drive was retained", () => {
  const present = openOne();
  try {
    const rooms = ["stays", "deleted", "retained", "deleting", "retaining", "going", "changed", "reached"];
    for (const name of rooms) {
      const state = ["going", "changed", "reached"].includes(name) ? "destroying" : "active";
      for (const one of [copy, present]) addRoom(one, name, state);
    }
    addRoom(copy, "before", "destroyed");
    addRoom(present, "after");
    const becomes = (name: string, row: Partial<RoomRow>) => updateRoom(present.queries, uid(name), row);
    becomes("deleted", { state: "destroyed" });
    becomes("retained", { state: "destroyed", drive_until_at: AT });
    becomes("deleting", { state: "destroying", keep_drive: false });
    becomes("retaining", { state: "destroying" });
    becomes("changed", { keep_drive: false });
    becomes("reached", { state: "destroyed", drive_until_at: AT });
    const ended = roomsEndedSince(copy.queries, present.queries);
    expect(Object.fromEntries(ended.map(({ room_uid, keep_drive }) => [room_uid.slice(4), keep_drive]))).toEqual({
      ...{ deleted: false, retained: true, deleting: false, retaining: true, changed: false, reached: true },
    });
  } finally {
    present.close();
  }
});
