/**
 * API of the rooms' shared drives: one verb per file. daemon/host/files/beneath.ts keeps paths within their drive, whatever a guest does
 * there.
 */
import type { OrgId } from "../../../shared/ids.ts";
import type { Bound } from "../../core/call/operation.ts";
import { Mailbox } from "../../core/concurrency/mailbox.ts";
import type { MaybePromise } from "../../core/concurrency/maybe-promise.ts";
import { every } from "../../core/concurrency/repeat.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { describeError } from "../../core/service-error.ts";
import { sweepTemporaryFiles } from "../../host/files/sweep.ts";
import type { ShareMode } from "../../host/virtiofs/throttle.ts";
import type { DriveDeps, DriveRoom } from "./deps.ts";
import { getFile } from "./files/get-file.ts";
import { list } from "./files/list.ts";
import { mkdir } from "./files/mkdir.ts";
import { move } from "./files/move.ts";
import { NameLocks } from "./files/name-locks.ts";
import { putFile } from "./files/put-file.ts";
import { Quiesce } from "./files/quiesce.ts";
import { read } from "./files/read.ts";
import { remove } from "./files/remove.ts";
import { type Streams, saveStreams } from "./files/save.ts";
import { stat } from "./files/stat.ts";
import { write } from "./files/write.ts";
import { LOOK_EVERY_MS, Quota, type QuotaDeps } from "./quota/guest-enforcement.ts";
import type { Measured } from "./quota/measure.ts";
import { Usage } from "./quota/usage.ts";
import type { Drive } from "./verb.ts";

export type { DriveDeps, DriveRoom };

export interface DriveService {
  operations: readonly Bound[];
  /** Usage of a room's drive, some seconds old at most unless the drive is very large. */
  measure(room: Pick<DriveRoom, "room_uid" | "org_id" | "drive_directory">): MaybePromise<Measured>;
  /** Total bytes of the organization's drives. */
  measureOrg(orgId: OrgId): Promise<number>;
  /** Removes leftovers of writes that an earlier daemon did not finish. */
  sweep(room: Pick<DriveRoom, "room_id" | "org_id" | "drive_directory">): Promise<void>;
  /** Saves a command's streams in the directory `path`. Throws the errors of fs_write. */
  saveStreams(room: DriveRoom, path: string, streams: Streams): ReturnType<typeof saveStreams>;
  /** Starts enforcing the quota on guests. */
  watch(deps: Pick<QuotaDeps, "rooms" | "onChange">): { stop(): void };
  /** Current mode of the guests' access to the drive. */
  modeOf(roomUid: string): ShareMode;
  /** Blocks changes by calls until `work` is done. */
  holding<T>(roomUid: string, work: () => Promise<T>): Promise<T>;
  /** Blocks changes by calls and guests until `work` is done; guests wait. Throws DeadlineError. */
  still<T>(roomUid: string, work: () => Promise<T>): Promise<T>;
  /** Continues to count the drive of a room that has ended. */
  keep(room: Pick<DriveRoom, "room_uid" | "org_id" | "drive_directory">): void;
  /** Drops the cached state of a removed drive. */
  forget(roomUid: string): void;
}

export function makeDrive(deps: DriveDeps): DriveService {
  const piecesOf: Drive["piecesOf"] = ({ org_id }, signal) =>
    new Pieces(loopTime, ownerOf(org_id), "room.drive", signal && { signal });
  const drive: Drive = {
    ...deps,
    usage: new Usage(deps),
    turns: new NameLocks(),
    stillness: new Quiesce(),
    piecesOf,
  };
  /** One drive at a time is swept, in the background. */
  const sweeps = new Mailbox();
  let quota: Quota | null = null;
  return {
    operations: [write, list, read, stat, mkdir, move, remove, putFile, getFile].map((verb) => verb(drive)),
    measure: (room) => drive.usage.of(room).current(),
    measureOrg: (orgId) => drive.usage.measureOrg(orgId),
    sweep: async (room) => {
      const swept = await sweeps.put(() => sweepTemporaryFiles(room.drive_directory, piecesOf(room)));
      if (swept > 0) deps.log.info("temporary files swept", { room_id: room.room_id, swept });
    },
    saveStreams: (room, path, streams) => saveStreams(drive, room, path, streams),
    watch: (watched) => {
      const watching = new Quota({ ...deps, ...watched, usage: drive.usage });
      quota = watching;
      const failed = (error: unknown) =>
        deps.log.error("failed to check the sizes of drives", { error: describeError(error) });
      return { stop: every(LOOK_EVERY_MS, () => watching.look(), failed) };
    },
    modeOf: (roomUid) => quota?.modeOf(roomUid) ?? "open",
    holding: (roomUid, work) => drive.stillness.holding(roomUid, work),
    still: (roomUid, work) =>
      drive.stillness.holding(roomUid, () => deps.restraints.still(() => deps.sharesOf(roomUid), work)),
    keep: (room) => {
      drive.usage.keep(room);
      quota?.forget(room.room_uid);
    },
    forget: (roomUid) => {
      drive.usage.forget(roomUid);
      quota?.forget(roomUid);
    },
  };
}
