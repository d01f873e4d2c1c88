/** Owns rooms: the container of a run, with its sandboxes and its drive. */
import { rm } from "node:fs/promises";
import type { RoomUid } from "../../shared/ids.ts";
import { now } from "../core/clock.ts";
import { Deadlines } from "../core/deadlines.ts";
import type { Log } from "../core/log.ts";
import type { Bound, Caller } from "../core/operation.ts";
import type { Paths } from "../core/paths.ts";
import type { FindRoom, RoomTarget } from "../core/room-target.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Database } from "../db/transact.ts";
import { makeCreate } from "./create.ts";
import { makeDestroy } from "./destroy.ts";
import { makeGet } from "./get.ts";
import { makeRoomRecords } from "./record.ts";
import { drivesDue, drivesKept, getRoom, liveRooms, prepareRoomLookup, updateRoom } from "./store.ts";
import type { RoomRow } from "./table.ts";
import { toTarget } from "./target.ts";

export interface RoomDeps {
  database: Database;
  log: Log;
  paths: Paths;
  hostId: string;
  driveLimitBytes: number;
  retentionSeconds: number;
  measureDrive(room: RoomTarget): Promise<{ used_bytes: number; file_count: number }>;
  sandboxes: {
    countLive(roomUid: RoomUid): number;
    destroyAll(roomUid: RoomUid): Promise<string[]>;
  };
}

export interface Rooms {
  operations: Bound[];
  /** Takes up what a daemon before this one left half done, and sets the deadlines of rooms and kept drives. */
  recover(): Promise<void>;
  stop(): void;
}

/** How a room is found: made first, because the nouns below rooms need it. */
export function makeRoomFinder(database: Database, paths: Paths) {
  const lookup = prepareRoomLookup(database.queries);
  const findRow = (caller: Caller, roomId: string): RoomRow => {
    const row = mayEnter(caller, roomId) ? lookup(caller.org_id, roomId) : undefined;
    if (!row) throw new ServiceError("room_not_found", { detail: `There is no room ${roomId}.` });
    return row;
  };
  const find: FindRoom = (caller, roomId) => toTarget(findRow(caller, roomId), paths);
  const current = (roomUid: RoomUid): Pick<RoomTarget, "room_id" | "state"> =>
    getRoom(database.queries, roomUid) ?? { room_id: "", state: "destroyed" };
  return { lookup, findRow, find, current };
}

/** A key that is bound to rooms sees no others. */
function mayEnter(caller: Caller, roomId: string): boolean {
  return caller.room_ids === null || caller.room_ids.includes(roomId);
}

export function makeRooms(deps: RoomDeps, finder: ReturnType<typeof makeRoomFinder>): Rooms {
  const { database, paths, log } = deps;
  const records = makeRoomRecords(deps);
  const destroyer = makeDestroy(deps, finder.findRow, () => void eraseDue());

  const expiries = new Deadlines((roomUid) => {
    const row = getRoom(database.queries, roomUid as RoomUid);
    if (row?.state !== "active") return;
    destroyer.end(row, true).catch((error: unknown) => log.error("room not destroyed", { error: String(error) }));
  });
  const retirements = new Deadlines(() => void eraseDue());
  const schedule = (row: RoomRow) => expiries.set(row.room_uid, row.expires_at);

  const eraseDue = async () => {
    for (const row of drivesDue(database.queries, now())) {
      await rm(paths.retired_room(row.room_uid), { recursive: true, force: true });
      await database.commit((queries) => updateRoom(queries, row.room_uid, { drive_until_at: null }));
    }
    const next = drivesKept(database.queries)
      .map((row) => row.drive_until_at)
      .sort()[0];
    retirements.set("next", next ?? null);
  };

  return {
    operations: [
      makeCreate(deps, records, finder.lookup, schedule),
      ...makeGet(deps, records, finder.findRow),
      destroyer.operation,
    ],
    recover: async () => {
      for (const row of liveRooms(database.queries)) {
        if (row.state === "destroying") await destroyer.end(row, true);
        else schedule(row);
      }
      await eraseDue();
    },
    stop: () => {
      expiries.clear();
      retirements.clear();
    },
  };
}
