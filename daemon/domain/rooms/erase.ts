/**
 * Erases directories of rooms, live or retired: first the kernel's quota of the drive, then all contents, however deep guests have nested
 * them. One room at a time, organizations take turns, and only the end of the room itself waits for it.
 */
import { existsSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import type { RoomUid } from "../../../shared/ids.ts";
import { FairQueue } from "../../core/concurrency/fair-queue.ts";
import { errnoOf } from "../../core/service-error.ts";
import { eraseDirectory } from "../../host/files/erase.ts";
import type { RoomDeps } from "./deps.ts";
import type { RoomRow } from "./table.ts";

type EraseDeps = Pick<RoomDeps, "paths" | "driveQuota" | "giveUpSpace">;

export class Eraser {
  readonly #deps: EraseDeps;
  readonly #waiting = new FairQueue<() => Promise<void>>();
  readonly #underWay = new Map<RoomUid, Promise<void>>();
  #isBusy = false;

  constructor(deps: EraseDeps) {
    this.#deps = deps;
  }

  /** Whether a room is being erased, or queued for it. */
  has(roomUid: RoomUid): boolean {
    return this.#underWay.has(roomUid);
  }

  /** Erases everything that a room has on disk; a repeated call joins the first. Does nothing if it is already gone. */
  erase({ org_id, room_uid }: Pick<RoomRow, "org_id" | "room_uid">): Promise<void> {
    const known = this.#underWay.get(room_uid);
    if (known) return known;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#underWay.set(room_uid, promise);
    this.#waiting.add(org_id, async () => {
      await this.#eraseNow(room_uid).then(resolve, reject);
      this.#underWay.delete(room_uid);
    });
    void this.#next();
    return promise;
  }

  async #next(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let work = this.#waiting.take(); work; work = this.#waiting.take()) await work();
    this.#isBusy = false;
  }

  async #eraseNow(roomUid: RoomUid): Promise<void> {
    const { paths, driveQuota, giveUpSpace } = this.#deps;
    for (const directory of [paths.room(roomUid), paths.retired_room(roomUid)]) {
      driveQuota.end(paths.drive_in(directory));
      await eraseDirectory(directory, giveUpSpace);
    }
  }
}

/** Removes the directories of a room that was never created: no guest has seen them. Others are left as they are. */
export async function removeUnborn({ paths, driveQuota, giveUpSpace }: EraseDeps, roomUid: string): Promise<void> {
  driveQuota.end(paths.drive(roomUid));
  // The drive of a room that was to be made from a checkpoint is not empty.
  if (existsSync(paths.unborn(roomUid))) return await eraseDirectory(paths.room(roomUid), giveUpSpace);
  for (const directory of [paths.drive(roomUid), paths.room(roomUid)]) {
    await rmdir(directory).catch((error: unknown) => {
      if (!["ENOENT", "ENOTEMPTY", "ENOTDIR"].includes(errnoOf(error) ?? "")) throw error;
    });
  }
}
