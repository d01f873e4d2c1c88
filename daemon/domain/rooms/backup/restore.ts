/**
 * Makes a room from a room's backup file. The file is untrusted:
 *
 *     the file is read into a directory of its own → its contents are validated against what a room could write
 *     → the room's directory, marked as unborn → its drive → its messages, barriers and agents, in many commits
 *     ⇒ one commit: the room's row, which makes all of that part of a room
 *
 * A starting daemon removes unborn rooms and leftover backup files. Nothing that runs is made from a file.
 */
import { rm, writeFile } from "node:fs/promises";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import type { roomFromBackup } from "../../../../shared/api/room-backups.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import { after, wallMs } from "../../../core/clock.ts";
import { DeadlineError } from "../../../core/concurrency/published.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError, errnoOf, ServiceError } from "../../../core/service-error.ts";
import { ownRows } from "../../../db/room-rows.ts";
import { violatesUnique } from "../../../db/transact.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import type { Bounds } from "../../../host/files/drive-store.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { namesIn } from "../../../host/files/gone.ts";
import { giveNouns, stageNouns, wakeNouns } from "../checkpoints/room-state.ts";
import { insertCheckpoint } from "../checkpoints/store.ts";
import type { CheckpointRow } from "../checkpoints/table.ts";
import { inUse, makeDirectories, newRoom, placing } from "../create.ts";
import type { RoomDeps } from "../deps.ts";
import { NotWhole } from "../move/format.ts";
import { CLIENTS } from "../move/timeouts.ts";
import { BLOCK_BYTES, RoomReader } from "../move/unpack.ts";
import type { RoomRecords } from "../record.ts";
import { insertRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import { Allowance } from "./allowance.ts";
import { bringCheckpoint } from "./checkpoints.ts";
import type { RoomFile } from "./files.ts";
import { type BackedUp, BEYOND, MAX_STATE_BYTES, OF_CHECKPOINT, readOpening } from "./format.ts";
import { readForeignState } from "./state.ts";
import { restoreUntrustedDrive } from "./untrusted-drive.ts";

/** Limit of a file's apparent size, holes included, as on common file systems. */
const MAX_FILE_BYTES = 2 ** 43;

type Body = OutputOf<typeof roomFromBackup>;

interface RestoreParts {
  deps: RoomDeps;
  records: Pick<RoomRecords, "of">;
}

export interface RestoredRoom {
  row: RoomRow;
  body: Body;
}

/** Throws invalid_body, room_id_in_use, quota_exceeded, drive_full, disk_full. */
export async function restoreRoom(
  { deps, records }: RestoreParts,
  call: KeyCall,
  room_id: string,
  source: AsyncIterable<Uint8Array>,
  file: RoomFile,
): Promise<RestoredRoom> {
  try {
    const read = await readFile(deps, call, room_id, source, file);
    const { row, about } = read;
    call.audit.room_uid = row.room_uid;
    call.audit.details = { of_room: about.room_id, backed_up_at: about.made_at };
    return { row, body: await makeRoom({ deps, records }, call, read, file) };
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
): Promise<Read> {
  const reader = new RoomReader(source, CLIENTS);
  const about = readOpening(await reader.first());
  const made = newRoom(deps, call, room_id, about.labels);
  const expires_at = about.ttl_seconds === null ? null : after(made.created_at, about.ttl_seconds);
  const row = { ...made, expires_at };
  requireDrive(about, row);
  const added = about.checkpoints.reduce((sum, each) => sum + each.drive_bytes, about.drive_bytes);
  await deps.branch.sandboxes.requireBytes(row, { added });
  const { directory, store, state } = place;
  const bounds = boundsOf(deps, row);
  const drives = 1 + about.checkpoints.length;
  const files = bounds.entries + 2;
  await reader.unpack(
    { store, state, room: directory, sandboxes: directory, templates: new Map() },
    {
      // Empty files count as a block each.
      bytes: drives * (bounds.bytes + MAX_STATE_BYTES + files * BLOCK_BYTES),
      files: drives * files,
      size: MAX_FILE_BYTES,
      mayHave: OF_CHECKPOINT,
      // The sizes that the file declares are untrusted.
      allow: (taken) => deps.branch.sandboxes.requireBytes(row, { added: taken }),
    },
  );
  const listed = new Set<string>(about.checkpoints.map(({ checkpoint_id }) => checkpoint_id));
  if ((await namesIn(place.checkpoints)).some((name) => !listed.has(name)))
    throw new NotWhole("it has files of a checkpoint that it does not list");
  await faultPoint("backup.read");
  return { about, row };
}

interface Read {
  about: BackedUp;
  row: RoomRow;
}

async function makeRoom(
  { deps, records }: RestoreParts,
  call: KeyCall,
  { about, row }: Read,
  file: RoomFile,
): Promise<Body> {
  const { place } = file;
  const { paths, branch, log } = deps;
  const { room_uid, room_id, org_id } = row;
  const { made_at, left_out } = about;
  const pausedMs = Math.max(0, wallMs() - Date.parse(made_at));
  const room = { room_uid, org_id, pausedMs, rows: ownRows(room_uid) };
  let body: Body;
  try {
    await makeDirectories(deps, row);
    await writeFile(paths.unborn(room_uid), "", { mode: 0o600 });
    await syncDirectory(paths.room(room_uid));
    const [drive, links, root] = [paths.drive(room_uid), paths.drive_links(room_uid), deps.driveRoot(room_uid)];
    const allowance = new Allowance(branch.sandboxes, row, boundsOf(deps, row));
    const { bytes } = await allowance.within((bounds) =>
      restoreUntrustedDrive(call.signal, { store: place.store, drive, links, root, bounds }),
    );
    await allowance.take(bytes);
    const checkpoints: CheckpointRow[] = [];
    for (const said of about.checkpoints) {
      checkpoints.push(await bringCheckpoint(deps, call, row, file, { said, allowance }));
    }
    // Check the quota again: other rooms may exist by now, and the size that the file declared for its drive is untrusted.
    const added = checkpoints.reduce((sum, each) => sum + each.drive_bytes + each.state_bytes, bytes);
    await branch.sandboxes.requireBytes(row, { added });
    await faultPoint("backup.drive");
    const record = await records.of(row);
    // Last step, to keep the state in memory no longer than its insertion takes.
    body = await file.alone(async () => {
      call.signal.throwIfAborted();
      const state = await readForeignState(place.state, branch.nouns, { takenAtMs: Date.parse(made_at), org_id });
      await stageNouns(branch.nouns, state, room, { over: call.signal, isOther: true, requiresSpace: true });
      await faultPoint("backup.rows");
      return await placing(deps, row, (queries) => {
        call.signal.throwIfAborted();
        insertRoom(queries, row);
        giveNouns(queries, branch.nouns, state, room, "put");
        for (const checkpoint of checkpoints) insertCheckpoint(queries, checkpoint);
        const warnings = [...deps.quota.admit(queries, call, { rooms: 1 }), ...record.warnings];
        const made = { room: { ...record, warnings }, of_room: about.room_id, backed_up_at: made_at, left_out };
        // Stored in the same commit as the room's row: a room that exists has a recorded origin.
        call.work.keep("created", made);
        return made;
      });
    });
  } catch (error) {
    deps.drive.forget(room_uid);
    deps.driveQuota.end(paths.drive(room_uid));
    await deps.fabric.forget(room_uid);
    await eraseDirectory(paths.room(room_uid), deps.giveUpSpace);
    throw violatesUnique(error, "rooms.room_id") ? inUse(room_id) : error;
  }
  await faultPoint("backup.made");
  await rm(paths.unborn(room_uid), { force: true });
  await wakeNouns(branch.nouns, room).catch((error: unknown) =>
    log.error("failed to wake waits in a room", { room_uid, error: describeError(error) }),
  );
  return body;
}

function boundsOf({ driveLimitEntries }: RoomDeps, { drive_limit_bytes }: RoomRow): Bounds {
  return { bytes: drive_limit_bytes + BEYOND.bytes, entries: driveLimitEntries + BEYOND.entries };
}

function requireDrive({ drive_bytes }: BackedUp, { drive_limit_bytes }: RoomRow): void {
  if (drive_bytes <= drive_limit_bytes + BEYOND.bytes) return;
  throw new ServiceError("quota_exceeded", {
    detail: `The file's drive takes ${drive_bytes} bytes, and the limit on this host is ${drive_limit_bytes}.`,
    details: { limit: "drive_bytes", used: drive_bytes, cap: drive_limit_bytes },
  });
}

function meant(error: unknown, over: AbortSignal): unknown {
  if (error instanceof ServiceError) return error;
  if (errnoOf(error) === "ENOSPC") return new ServiceError("disk_full", { cause: error });
  const isSilent = error instanceof DeadlineError;
  if (!(error instanceof NotWhole) && !isSilent && !over.aborted && errnoOf(error) !== "EFBIG") return error;
  const why = error instanceof NotWhole || isSilent ? error.message : "it did not arrive completely";
  return new ServiceError("invalid_body", {
    detail: `The body is not a valid room file: ${why}.`,
    hint: "Room files are created by {{room_backup}}.",
    cause: error,
  });
}
