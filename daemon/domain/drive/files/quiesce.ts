/**
 * Quiescing of a drive for a checkpoint: no call changes it; calls in progress are waited for, new ones wait. Writes to a temporary file
 * continue.
 */
import { statSync } from "node:fs";
import { within } from "../../../core/concurrency/published.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Beneath } from "../../../host/files/beneath.ts";
import { ifThere } from "../../../host/files/gone.ts";
import type { DriveRoom } from "../deps.ts";

/** Maximum wait for calls in progress: a slower disk is in no state to be copied. */
const PATIENCE_MS = 30_000;

interface QuiescedDrive {
  room: Pick<DriveRoom, "room_uid" | "drive_directory">;
  root: Pick<Beneath, "inode">;
}

interface DriveCalls {
  /** Calls that change it now. */
  inside: Set<Promise<unknown>>;
  /** Settles when calls may change the drive again; null while they may. */
  held: Promise<unknown> | null;
}

export class Quiesce {
  readonly #rooms = new Map<string, DriveCalls>();

  /**
   * Runs `work`, which changes the drive, once that is allowed. Throws invalid_state if the room got another drive since the call found it.
   */
  async passing<T>({ room, root }: QuiescedDrive, work: () => Promise<T>): Promise<T> {
    const roomUid = room.room_uid;
    while (this.#rooms.get(roomUid)?.held) await this.#rooms.get(roomUid)?.held;
    const isReplaced = ifThere(() => statSync(room.drive_directory, { bigint: true }).ino !== root.inode);
    if (isReplaced)
      throw new ServiceError("invalid_state", { detail: "The room was restored to a checkpoint during the call." });
    const kept = this.#of(roomUid);
    const passing = work();
    kept.inside.add(passing);
    try {
      return await passing;
    } finally {
      kept.inside.delete(passing);
      this.#drop(roomUid, kept);
    }
  }

  /** No call changes the drive until `work` is done. Throws DeadlineError if a call in progress does not end in time. */
  async holding<T>(roomUid: string, work: () => Promise<T>): Promise<T> {
    const kept = this.#of(roomUid);
    const over = Promise.withResolvers<void>();
    kept.held = over.promise;
    try {
      await within(Promise.allSettled(kept.inside), PATIENCE_MS, "a call that changes the drive");
      return await work();
    } finally {
      kept.held = null;
      over.resolve();
      this.#drop(roomUid, kept);
    }
  }

  #of(roomUid: string): DriveCalls {
    const kept = this.#rooms.get(roomUid) ?? { inside: new Set(), held: null };
    this.#rooms.set(roomUid, kept);
    return kept;
  }

  #drop(roomUid: string, { inside, held }: DriveCalls): void {
    if (inside.size === 0 && held === null) this.#rooms.delete(roomUid);
  }
}
