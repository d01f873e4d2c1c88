/**
 * Makes a room of a room's file, which anybody may have written:
 *
 *   the file is read into a place of its own → what it says is held against what a room could have written
 *   → the room's directory, marked as unborn → its drive ⇒ one commit: its row, with what the file had of the other
 *
 * What a daemon finds unborn at its start goes, and so does what it finds of files. Nothing that runs comes of a file.
 */
import { rm, writeFile } from "node:fs/promises";
import { after } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import type { KeyCall } from "../../../core/operation.ts";
import { DeadlineError } from "../../../core/published.ts";
import { describeError, errnoOf, ServiceError } from "../../../core/service-error.ts";
import { violatesUnique } from "../../../db/transact.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { copying } from "../checkpoints/copying.ts";
import { giveNouns, type RoomState, wakeNouns } from "../checkpoints/nouns.ts";
import { inUse, makeDirectories, newRoom, placing } from "../create.ts";
import type { RoomDeps } from "../deps.ts";
import { NotWhole } from "../move/format.ts";
import { RoomReader } from "../move/unpack.ts";
import { insertRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import type { RoomFile } from "./files.ts";
import { type BackedUp, BEYOND, MOST_STATE_BYTES, readOpening } from "./format.ts";
import { readForeignState } from "./state.ts";

/** A file's length with its holes, as file systems have it. */
const MOST_FILE_BYTES = 2 ** 43;

export interface BroughtBack {
  row: RoomRow;
  about: BackedUp;
  warnings: string[];
}

/** Throws invalid_body, room_id_in_use, quota_exceeded, drive_full, disk_full. */
export async function bringBack(
  deps: RoomDeps,
  call: KeyCall,
  room_id: string,
  source: AsyncIterable<Uint8Array>,
  file: RoomFile,
): Promise<BroughtBack> {
  try {
    const { about, state, row } = await readFile(deps, call, room_id, source, file);
    return { row, about, warnings: await makeRoom(deps, call, row, about, state, file) };
  } catch (error) {
    throw meant(error, call.signal);
  }
}

async function readFile(
  deps: RoomDeps,
  call: KeyCall,
  room_id: string,
  source: AsyncIterable<Uint8Array>,
  { place }: RoomFile,
): Promise<{ about: BackedUp; state: RoomState["nouns"]; row: RoomRow }> {
  const reader = new RoomReader(source);
  const about = readOpening(await reader.first());
  const made = newRoom(deps, call, room_id, about.labels);
  const expires_at = about.ttl_seconds === null ? null : after(made.created_at, about.ttl_seconds);
  const row = { ...made, expires_at };
  requireDrive(about, row);
  await deps.branch.sandboxes.requireBytes(row, { added: about.drive_bytes });
  const { directory, store, state } = place;
  await reader.unpack(
    { store, state, room: directory, sandboxes: directory, templates: new Map() },
    {
      bytes: row.drive_limit_bytes + BEYOND.bytes + MOST_STATE_BYTES,
      files: deps.driveLimitEntries + BEYOND.entries + 2,
      size: MOST_FILE_BYTES,
      isDriveOnly: true,
    },
  );
  await faultPoint("backup.read");
  return { about, state: await readForeignState(state, deps.branch.nouns), row };
}

async function makeRoom(
  deps: RoomDeps,
  call: KeyCall,
  row: RoomRow,
  { made_at }: BackedUp,
  state: RoomState["nouns"],
  { place }: RoomFile,
): Promise<string[]> {
  const { paths, branch, log } = deps;
  const { room_uid, room_id, org_id } = row;
  const room = { room_uid, org_id, pausedMs: Math.max(0, Date.now() - Date.parse(made_at)) };
  let warnings: string[];
  try {
    await makeDirectories(deps, row);
    await writeFile(paths.unborn(room_uid), "", { mode: 0o600 });
    await syncDirectory(paths.room(room_uid));
    const { bytes } = await restoreDrive(deps, row, place.store, call.signal);
    // Others may have been made since; and what the file said of its drive is only what it said.
    await branch.sandboxes.requireBytes(row, { added: bytes });
    await faultPoint("backup.drive");
    warnings = await placing(deps, row, (queries) => {
      call.signal.throwIfAborted();
      insertRoom(queries, row);
      giveNouns(queries, branch.nouns, state, room, "put");
      return deps.quota.admit(queries, call, { rooms: 1 });
    });
  } catch (error) {
    deps.driveQuota.end(paths.drive(room_uid));
    await eraseDirectory(paths.room(room_uid), deps.giveUpSpace);
    throw violatesUnique(error, "rooms.room_id") ? inUse(room_id) : error;
  }
  await faultPoint("backup.made");
  await rm(paths.unborn(room_uid), { force: true });
  await wakeNouns(branch.nouns, room).catch((error: unknown) =>
    log.error("whoever waits in a room was not woken", { room_uid, error: describeError(error) }),
  );
  return warnings;
}

/** What a list that no roomd has made comes to. */
const OF_THE_LIST = ["ENOENT", "EEXIST", "ENAMETOOLONG", "EINVAL", "ENOTDIR", "EISDIR", "EFBIG"];

async function restoreDrive(
  { paths, driveRoot, driveLimitEntries }: RoomDeps,
  row: RoomRow,
  store: string,
  over: AbortSignal,
) {
  const { room_uid, drive_limit_bytes } = row;
  const bounds = { bytes: drive_limit_bytes + BEYOND.bytes, entries: driveLimitEntries + BEYOND.entries };
  const [drive, links, root] = [paths.drive(room_uid), paths.drive_links(room_uid), driveRoot(room_uid)];
  return await copying(over, async (copier) => {
    try {
      return await copier.restore({ store, drive, links, root, bounds });
    } catch (error) {
      const code = errnoOf(error);
      const isOfList = code === null || OF_THE_LIST.includes(code);
      if (over.aborted || error instanceof DeadlineError || !isOfList) throw error;
      throw new NotWhole("the list of what is on its drive is none that a roomd has written", { cause: error });
    }
  });
}

function requireDrive({ drive_bytes }: BackedUp, { drive_limit_bytes }: RoomRow): void {
  if (drive_bytes <= drive_limit_bytes + BEYOND.bytes) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The file's drive takes ${drive_bytes} bytes, and a drive here may have ${drive_limit_bytes}.`,
    details: { limit: "drive_bytes", used: drive_bytes, cap: drive_limit_bytes },
  });
}

function meant(error: unknown, over: AbortSignal): unknown {
  if (error instanceof ServiceError) return error;
  if (errnoOf(error) === "ENOSPC") return new ServiceError("disk_full", { cause: error });
  const isSilent = error instanceof DeadlineError;
  if (!(error instanceof NotWhole) && !isSilent && !over.aborted && errnoOf(error) !== "EFBIG") return error;
  const why = error instanceof NotWhole || isSilent ? error.message : "it did not come whole";
  return new ServiceError("invalid_body", {
    detail: `The body is no room's file that a room can be made of: ${why}.`,
    hint: "Files are made by GET /v1/rooms/{room_id}/backup (roomd room backup).",
    cause: error,
  });
}
