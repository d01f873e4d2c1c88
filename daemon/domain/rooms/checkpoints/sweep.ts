/** Owns removing what a daemon that was killed has left of checkpoints: directories that no row tells of. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { isGone } from "../../../host/files/gone.ts";
import type { RoomDeps } from "../deps.ts";
import { liveRooms } from "../store.ts";
import type { Locks } from "./locks.ts";
import { findCheckpoint } from "./store.ts";

export async function sweepCheckpoints(
  { paths, database: { queries }, giveUpSpace }: RoomDeps,
  locks: Pick<Locks, "isHeld">,
): Promise<void> {
  for (const { room_uid } of liveRooms(queries)) {
    const directory = paths.checkpoints(room_uid);
    for (const name of await namesIn(directory)) {
      if (locks.isHeld(room_uid) || findCheckpoint(queries, room_uid, name)) continue;
      await eraseDirectory(join(directory, name), giveUpSpace);
    }
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}
