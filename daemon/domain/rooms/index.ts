/** Rooms: the container of a run, with its sandboxes and its drive. */

import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { InputOf } from "../../../shared/api/contract.ts";
import { roomDestroy, type roomList } from "../../../shared/api/rooms.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Bound, Caller } from "../../core/call/operation.ts";
import { type FindRoom, type RoomTarget, requireHere } from "../../core/call/room-target.ts";
import { now } from "../../core/clock.ts";
import type { Paths } from "../../core/config/paths.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { RowsKey } from "../../db/room-rows.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit } from "../audit/index.ts";
import type { Consumer } from "../orgs/index.ts";
import { makeRoomBackups } from "./backup/index.ts";
import { makeCheckpoints } from "./checkpoints/index.ts";
import { Locks } from "./checkpoints/locks.ts";
import { dropNouns, strayRows } from "./checkpoints/room-state.ts";
import { makeCreate } from "./create.ts";
import type { RoomDeps } from "./deps.ts";
import { makeDestroy } from "./destroy.ts";
import { Eraser, removeUnborn } from "./erase.ts";
import { makeRoomExpiry } from "./expiry.ts";
import { makeGet } from "./get.ts";
import { makeKeptDrives } from "./kept-drives.ts";
import { makeMoves, type PeerCalls } from "./move/index.ts";
import { arrivingRooms } from "./move/receive.ts";
import type { Ownership } from "./ownership.ts";
import { pageOfRooms } from "./page.ts";
import { makeRoomRecords } from "./record.ts";
import {
  claimRooms,
  destroyingRooms,
  getRoom,
  keptRooms,
  liveRoomOf,
  liveRooms,
  liveRoomUids,
  orgRooms,
  prepareRoomLookup,
  type RoomPlace,
  rememberedRoom,
} from "./store.ts";
import type { RoomRow } from "./table.ts";
import { isDriveKept, mayEnter, toTarget } from "./target.ts";
import { makeUpdate } from "./update.ts";

export type { FitsAnswer } from "../sandboxes/index.ts";
export { checkpointBytes, getCheckpoint } from "./checkpoints/store.ts";
export type { Arrived, Peers, Settled } from "./deps.ts";
export { forgetRoom, roomsToForget } from "./ended.ts";
export type { PeerCalls } from "./move/index.ts";
export { arrivingRooms } from "./move/receive.ts";
export { makeOwnership } from "./ownership.ts";
export { afterRoom, compareRooms, cursorAfterRoom, isOfPage } from "./page.ts";
export { type EndedRoom, roomsEndedSince, settleRooms } from "./restore-cleanup.ts";
export {
  arrivedRooms,
  comingUse,
  countAllRooms,
  countRooms,
  countRoomsByOrg,
  givenRooms,
  leavingRooms,
  liveRooms,
  liveRoomUids,
  misplacedRooms,
  orgsLeftBehind,
  placedWithoutRoom,
  unsettledRooms,
  updateRoom,
} from "./store.ts";

export interface Rooms {
  operations: Bound[];
  /** Throws invalid_cursor. */
  page(caller: Caller, query: InputOf<typeof roomList>): ReturnType<typeof pageOfRooms>;
  /** The current row of a room, also if it has ended. */
  current(roomUid: RoomUid): RoomRow | undefined;
  /** Bytes of a room's drive; 0 if the room is destroyed. */
  driveUsed(row: RoomPlace): Promise<number>;
  /**
   * Resumes work that a previous daemon left unfinished, the parts that need guests once the service accepts calls, and sets the deadlines
   * of rooms and kept drives.
   */
  recover(answering: Promise<unknown>): Promise<void>;
  /** Ends all rooms of an organization with their drives, retained ones too. Rejects if a room could not be ended. */
  endAll(orgId: OrgId): Promise<void>;
  /** Resumes unfinished destructions of rooms, and the erasing of drives. */
  reconcile(): Promise<void>;
  /** Requests that other hosts send to this one. */
  forPeers: PeerCalls;
  /** Whether a room of this name has been received from another host and is not reachable yet. */
  isComing(orgId: OrgId, roomId: string): boolean;
  stop(): void;
}

/** Maximum of one organization's rooms destroyed concurrently when it ends. */
const ENDS_AT_ONCE = 4;

/** Finds rooms; created first, because the nouns below rooms need it. */
export function makeRoomFinder(database: Database, paths: Paths, ownership: Ownership) {
  const lookup = prepareRoomLookup(database.queries);
  const found = <T>(row: T | undefined, roomId: string): T => {
    if (!row) throw new ServiceError("room_not_found", { detail: `There is no room ${roomId}.` });
    return row;
  };
  const lookupUid = (caller: Caller, roomUid: string): RoomRow | undefined => {
    const row = liveRoomOf(database.queries, caller.org_id, roomUid as RoomUid);
    return row && mayEnter(caller, row.room_id) ? row : undefined;
  };
  const lookupSeen = (caller: Caller, roomId: string): RoomRow | undefined =>
    mayEnter(caller, roomId) ? lookup(caller.org_id, roomId) : undefined;
  const findRow = (caller: Caller, roomId: string): RoomRow => {
    const row = found(lookupSeen(caller, roomId), roomId);
    ownership.require(row);
    if (row.branching !== null) requireHere(toTarget(row, paths));
    return row;
  };
  const find: FindRoom = (caller, roomId) => {
    const row = found(lookupSeen(caller, roomId), roomId);
    ownership.require(row);
    const target = toTarget(row, paths);
    requireHere(target);
    return target;
  };
  const current = (roomUid: RoomUid): RoomTarget => {
    const row = getRoom(database.queries, roomUid);
    if (!row) throw new ServiceError("room_not_found");
    const target = toTarget(row, paths);
    return target.is_moving || ownership.standing(row) === "here" ? target : { ...target, is_moving: true };
  };
  /** The same from a cache, outside of transactions, for callers that look up many rooms repeatedly. */
  const remembered = (roomUid: RoomUid): RoomTarget => {
    const row = rememberedRoom(database.queries, roomUid);
    if (!row) throw new ServiceError("room_not_found");
    return toTarget(row, paths);
  };
  const targets = (page: readonly RoomRow[]): RoomTarget[] => page.map((row) => toTarget(row, paths));
  const ofOrg = (orgId: OrgId): Iterable<RoomTarget[]> => orgRooms(database.queries, orgId).map(targets);
  const keptOf = (orgId: OrgId): Iterable<RoomTarget[]> => keptRooms(database.queries, orgId).map(targets);
  /** Names of this room in the memory of guests that were saved in other rooms. */
  const formerNames = (roomUid: RoomUid): readonly string[] => getRoom(database.queries, roomUid)?.former_ids ?? [];
  const nameOf = (roomUid: string): string | null => roomNameOf(database.queries, roomUid);
  return { lookup, lookupSeen, lookupUid, findRow, find, current, remembered, ofOrg, keptOf, formerNames, nameOf };
}

/** The name of a room, also if it has ended. */
export function roomNameOf(queries: Queries, roomUid: string): string | null {
  return getRoom(queries, roomUid as RoomUid)?.room_id ?? null;
}

/** The account to which the usage of a room's drive is charged; null if the room is no longer active. */
export function drivePlace(queries: Queries, roomUid: RoomUid): Consumer | null {
  const row = getRoom(queries, roomUid);
  if (row?.state !== "active") return null;
  return { org_id: row.org_id, room_uid: roomUid, agent_id: "", key_id: row.created_by_id };
}

/** Audit record of a room's end that no call requested. */
function recordEnd(queries: Queries, row: RoomRow, reason: string, agents: string[]): void {
  appendAudit(queries, {
    event: roomDestroy.audit,
    outcome: "success",
    at: now(),
    org_id: row.org_id,
    room_id: row.room_id,
    room_uid: row.room_uid,
    actor: { type: "system", id: "rooms", name: "rooms" },
    source: "reconciler",
    details: { reason, sandboxes_destroyed: agents },
  });
}

export function makeRooms(deps: RoomDeps, finder: ReturnType<typeof makeRoomFinder>): Rooms {
  const { database, paths, log } = deps;
  const records = makeRoomRecords(deps);
  const eraser = new Eraser(deps);
  const keptDrives = makeKeptDrives(deps, eraser);
  const onEnded = ({ room_uid }: RoomRow) => {
    expiry.cancel(room_uid);
    const ended = getRoom(database.queries, room_uid);
    if (ended && isDriveKept(ended)) deps.drive.keep(toTarget(ended, paths));
    else deps.drive.forget(room_uid);
    keptDrives.eraseDue();
  };
  const locks = new Locks();
  const checkpoints = makeCheckpoints({
    ...{ deps, records, locks, lookup: finder.lookup },
    findRow: (call, roomId) => finder.findRow(call.caller, roomId),
    schedule: (row) => expiry.schedule(row),
  });
  const backups = makeRoomBackups({
    ...{ deps, records, locks, lookup: finder.lookup },
    findRow: (call, roomId) => finder.findRow(call.caller, roomId),
    schedule: (row) => {
      expiry.schedule(row);
      checkpoints.schedule();
    },
  });
  const destroyer = makeDestroy(deps, finder.findRow, onEnded, { eraser, eraseKept: keptDrives.erase, checkpoints });
  const moves = makeMoves({
    deps: {
      ...deps,
      erase: (row) => eraser.erase(row),
      forgetCheckpoints: checkpoints.forget,
      onGone: onEnded,
      onStays: (row) => expiry.schedule(row),
    },
    locks,
    findRow: (call, roomId) => finder.findRow(call.caller, roomId),
    schedule: (row) => {
      expiry.schedule(row);
      checkpoints.schedule();
    },
  });
  const endAndRecord = async (row: RoomRow, keepDrive: boolean, reason: string) => {
    const { agents } = await destroyer.end(row, keepDrive);
    await database.commit((queries) => recordEnd(queries, row, reason, agents));
  };
  /** The drive of an interrupted room may have a lot on it: recovery does not wait for its removal. */
  const removeCutOff = async (roomUid: string) => {
    const isMuch = existsSync(paths.unborn(roomUid));
    const removed = removeUnborn(deps, roomUid).catch((error: unknown) =>
      log.error("failed to remove leftovers of a room", { room_uid: roomUid, error: describeError(error) }),
    );
    if (!isMuch) await removed;
  };
  /** There may be many rows: no call waits for their removal. */
  const removeStray = (rows: RowsKey) => {
    dropNouns(deps.branch.nouns, rows).catch((error: unknown) =>
      log.error("failed to remove rows that no room has", { rows, error: describeError(error) }),
    );
  };
  const endUnasked = (row: RoomRow, reason: string) => {
    endAndRecord(row, true, reason).catch((error: unknown) =>
      log.error("failed to destroy a room", { room_uid: row.room_uid, error: describeError(error) }),
    );
  };

  const expiry = makeRoomExpiry(deps, (row) => endUnasked(row, "expired"));

  /** A large drive takes a while: no caller waits for it. */
  const sweep = (row: RoomRow) => {
    deps.drive
      .sweep(toTarget(row, paths))
      .catch((error: unknown) =>
        log.warn("failed to sweep a drive", { room_id: row.room_id, error: describeError(error) }),
      );
  };

  return {
    page: (caller, query) => pageOfRooms(database.queries, deps.hostId, caller, query),
    current: (roomUid) => getRoom(database.queries, roomUid),
    driveUsed: async (row) =>
      row.state === "destroyed" ? 0 : (await deps.drive.measure(toTarget(row, paths))).used_bytes,
    operations: [
      makeCreate(deps, records, finder.lookup, expiry.schedule),
      ...makeGet(deps, records, finder.findRow),
      makeUpdate(deps, records, finder.findRow, expiry.schedule),
      destroyer.operation,
      ...checkpoints.operations,
      ...moves.operations,
      ...backups.operations,
    ],
    forPeers: moves.forPeers,
    isComing: moves.isComing,
    recover: async (answering) => {
      // A standalone host owns every room of its database, also if the database was restored or the host was renamed.
      const claimed = await database.commit((queries) => claimRooms(queries, deps.hostId));
      if (claimed > 0) log.info("claimed the rooms of this host's former name", { host: deps.hostId, rooms: claimed });
      const live = liveRooms(database.queries);
      const known = new Set<string>(live.map((row) => row.room_uid));
      // Leftovers of interrupted room creations (crash): they have no row.
      const arriving = arrivingRooms(paths);
      for (const name of await readdir(paths.rooms)) {
        if (!known.has(name) && !arriving.has(name)) await removeCutOff(name);
      }
      for (const rows of strayRows(database.queries, deps.branch.nouns)) removeStray(rows);
      await backups.sweep();
      await moves.recover();
      checkpoints.recover(answering);
      for (const row of live) {
        if (row.state === "destroying") {
          endUnasked(row, "taken_up");
          continue;
        }
        expiry.schedule(row);
        deps.driveQuota.renew(paths.drive(row.room_uid), {
          bytes: row.drive_limit_bytes,
          inodes: deps.driveLimitEntries,
        });
        sweep(row);
      }
      keptDrives.eraseDue();
    },
    endAll: async (orgId) => {
      const uids = liveRoomUids(database.queries, orgId).values();
      const endSome = async () => {
        for (const uid of uids) {
          const row = liveRoomOf(database.queries, orgId, uid);
          if (row) await endAndRecord(row, false, "org_ended");
        }
      };
      await Promise.all(Array.from({ length: ENDS_AT_ONCE }, endSome));
      for (const page of keptRooms(database.queries, orgId)) for (const row of page) await keptDrives.erase(row);
    },
    reconcile: async () => {
      for (const row of destroyingRooms(database.queries)) {
        if (!destroyer.isEnding(row)) endUnasked(row, "taken_up");
      }
      keptDrives.eraseDue();
    },
    stop: () => {
      checkpoints.stop();
      moves.stop();
      expiry.stop();
      keptDrives.stop();
    },
  };
}
