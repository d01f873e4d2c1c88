/** Removes leftovers of checkpoints from a killed daemon: directories without a row. */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { namesIn } from "../../../host/files/gone.ts";
import type { RoomDeps } from "../deps.ts";
import { liveRooms } from "../store.ts";
import type { Locks } from "./locks.ts";
import { eraseRetired } from "./retired.ts";
import { findCheckpoint } from "./store.ts";

export async function sweepCheckpoints(deps: RoomDeps, locks: Pick<Locks, "isHeld">): Promise<void> {
  const { paths, database } = deps;
  for (const { room_uid } of liveRooms(database.queries)) {
    const directory = paths.checkpoints(room_uid);
    for (const name of await namesIn(directory)) {
      if (locks.isHeld(room_uid) || findCheckpoint(database.queries, room_uid, name)) continue;
      // Synchronous, since a retry of the call may create a directory of this name.
      mkdirSync(paths.former(room_uid), { recursive: true, mode: 0o700 });
      renameSync(join(directory, name), join(paths.former(room_uid), crypto.randomUUID()));
    }
    eraseRetired(deps, room_uid);
  }
}
