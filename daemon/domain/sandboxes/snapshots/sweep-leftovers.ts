/** Removal of snapshot files that a killed daemon left behind: files without a row. */
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { RoomUid } from "../../../../shared/ids.ts";
import type { Paths } from "../../../core/config/paths.ts";
import type { Queries } from "../../../db/client.ts";
import { namesIn } from "../../../host/files/gone.ts";
import type { SnapshotPlaces } from "./place.ts";
import { findSnapshot } from "./store.ts";

export async function sweepSnapshots(
  paths: Pick<Paths, "rooms" | "snapshots" | "arriving">,
  queries: Queries,
  places: Pick<SnapshotPlaces, "isUsed">,
): Promise<void> {
  for (const roomUid of (await namesIn(paths.rooms)) as RoomUid[]) {
    // The rows of a snapshot that arrives from another host follow shortly.
    if (existsSync(paths.arriving(roomUid).directory)) continue;
    const directory = paths.snapshots(roomUid);
    for (const name of await namesIn(directory)) {
      if (places.isUsed(name) || findSnapshot(queries, roomUid, name)) continue;
      await rm(join(directory, name), { recursive: true, force: true });
    }
  }
}
