/**
 * Owns drives and checkpoints that a room has no more, or was to have: each is put aside under a name that none has had, and erased
 * there, so that nobody erases what another makes under the same name.
 */
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { RoomUid } from "../../../../shared/ids.ts";
import { describeError } from "../../../core/service-error.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { namesIn } from "../../../host/files/gone.ts";
import type { RoomDeps } from "../deps.ts";

/** Puts the drive aside that lies beside the room's; resolves once its place is free, and erases it after that. */
export async function putAside(deps: RoomDeps, roomUid: RoomUid): Promise<void> {
  const { paths, driveQuota } = deps;
  const turned = paths.turned_drive(roomUid);
  if (existsSync(turned)) {
    driveQuota.end(turned);
    await mkdir(paths.former(roomUid), { recursive: true, mode: 0o700 });
    await rename(turned, join(paths.former(roomUid), crypto.randomUUID()));
  }
  eraseFormer(deps, roomUid);
}

/** Erases all that was put aside, in the background. */
export function eraseFormer({ paths, giveUpSpace, log }: RoomDeps, roomUid: RoomUid): void {
  const erase = async () => {
    for (const name of await namesIn(paths.former(roomUid))) {
      await eraseDirectory(join(paths.former(roomUid), name), giveUpSpace);
    }
  };
  erase().catch((error: unknown) =>
    log.warn("a room's former drive was not erased", { room_uid: roomUid, error: describeError(error) }),
  );
}
