/**
 * Drives and checkpoints that a room no longer has, or was meant to get: each is renamed to a unique name and erased there, so that no
 * erasure hits a directory that another operation makes under the old name.
 */
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { RoomUid } from "../../../../shared/ids.ts";
import { describeError } from "../../../core/service-error.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { namesIn } from "../../../host/files/gone.ts";
import type { RoomDeps } from "../deps.ts";

/** Moves aside the second drive next to the room's; resolves once its path is free, and erases it after that. */
export async function retire(deps: RoomDeps, roomUid: RoomUid): Promise<void> {
  const { paths, driveQuota } = deps;
  const turned = paths.turned_drive(roomUid);
  if (existsSync(turned)) {
    driveQuota.end(turned);
    await mkdir(paths.former(roomUid), { recursive: true, mode: 0o700 });
    await rename(turned, join(paths.former(roomUid), crypto.randomUUID()));
  }
  eraseRetired(deps, roomUid);
}

/** Erases everything that was moved aside, in the background. */
export function eraseRetired({ paths, giveUpSpace, log }: RoomDeps, roomUid: RoomUid): void {
  const erase = async () => {
    for (const name of await namesIn(paths.former(roomUid))) {
      await eraseDirectory(join(paths.former(roomUid), name), giveUpSpace);
    }
  };
  erase().catch((error: unknown) =>
    log.warn("failed to erase a room's former drive", { room_uid: roomUid, error: describeError(error) }),
  );
}
