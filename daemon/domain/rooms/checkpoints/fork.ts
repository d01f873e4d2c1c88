/**
 * Makes another room of a checkpoint:
 *
 *   its directory, marked as unborn → its drive ⇒ one commit: its row, with what the database had of the other
 *   → a sandbox of each snapshot → who waits looks again ⇒ the row says that it is whole
 *
 * What a daemon finds unborn at its start goes; and so does a room that has a row and is not whole.
 */
import { rm, writeFile } from "node:fs/promises";
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import { newId, type RoomUid, type SandboxId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { actorOf, type KeyCall } from "../../../core/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { violatesUnique } from "../../../db/transact.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { DriveCopier } from "../../../host/files/drive-copier.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { appendAudit } from "../../audit/index.ts";
import type { ForkedItem } from "../../sandboxes/index.ts";
import { inUse, makeDirectories, newRoom } from "../create.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { getRoom, insertRoom, updateRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { giveState, readState, wakeNouns } from "./nouns.ts";
import type { CheckpointRow } from "./table.ts";

export interface Forked {
  room: RoomRecord;
  items: ForkedItem[];
}

interface Parts {
  deps: RoomDeps;
  records: RoomRecords;
  schedule(row: RoomRow): void;
}

/** Throws room_id_in_use, quota_exceeded, disk_full, room_destroying. */
export async function forkRoom(
  { deps, records, schedule }: Parts,
  call: KeyCall,
  source: RoomRow,
  checkpoint: CheckpointRow,
  room_id: string,
  over: AbortSignal,
): Promise<Forked> {
  const { database, paths, branch } = deps;
  const { checkpoint_id, sandboxes } = checkpoint;
  const place = paths.checkpoint(source.room_uid, checkpoint_id);
  const row: RoomRow = {
    ...newRoom(deps, call, room_id, source.labels),
    drive_limit_bytes: source.drive_limit_bytes,
    former_ids: [...new Set([source.room_id, ...source.former_ids])].filter((former) => former !== room_id),
    branching: { kind: "fork", checkpoint_id, key_id: call.caller.key_id },
  };
  const { room_uid, org_id } = row;
  const room = { room_uid, org_id, pausedMs: Math.max(0, Date.now() - Date.parse(checkpoint.cut_at)) };
  const sandboxIds = new Map(sandboxes.map(({ sandbox_id }) => [sandbox_id as string, newId("sbx")]));
  let warnings: string[];
  try {
    await makeDirectories(deps, row);
    await writeFile(paths.unborn(room_uid), "", { mode: 0o600 });
    await syncDirectory(paths.room(room_uid));
    await copyDrive(deps, place.drive, room_uid, over);
    await faultPoint("fork.drive");
    const state = await readState(place.state);
    const pathOf = (path: string) => renamed(path, [source.room_id, ...source.former_ids], room_id);
    warnings = await database.commit((queries) => {
      over.throwIfAborted();
      insertRoom(queries, row);
      giveState(queries, { nouns: branch.nouns, calls: branch.calls() }, state, room, {
        ...{ how: "put", sandboxIds, pathOf },
      });
      call.work.note({ room_uid, checkpoint_id });
      recordMade(queries, call, row, source, checkpoint);
      return deps.quota.admit(queries, call, { rooms: 1 });
    });
  } catch (error) {
    deps.driveQuota.end(paths.drive(room_uid));
    await eraseDirectory(paths.room(room_uid), deps.giveUpSpace);
    throw violatesUnique(error, "rooms.room_id") ? inUse(room_id) : error;
  }
  await faultPoint("fork.made");
  await rm(paths.unborn(room_uid), { force: true });
  schedule(row);
  const items = await beginAll(deps, call, row, checkpoint, sandboxIds);
  await wakeNouns(branch.nouns, room);
  await faultPoint("fork.begun");
  const whole = await database.commit((queries) => {
    updateRoom(queries, room_uid, { branching: null, updated_at: now() });
    return getRoom(queries, room_uid) ?? row;
  });
  const record = await records.of(whole);
  return { room: { ...record, warnings: [...warnings, ...record.warnings] }, items };
}

/** The first record of the room: of which one it is made. That one has the record of the call. */
function recordMade(
  queries: Queries,
  { caller, source, request_id, ip }: KeyCall,
  { org_id, room_id, room_uid, created_at }: RoomRow,
  from: RoomRow,
  { checkpoint_id }: CheckpointRow,
): void {
  appendAudit(queries, {
    ...{ event: "room.created", outcome: "success", at: created_at, actor: actorOf(caller), source, request_id, ip },
    ...{ org_id, room_id, room_uid },
    details: { forked_from: from.room_id, forked_from_uid: from.room_uid, checkpoint_id },
  });
}

async function beginAll(
  { branch, paths }: RoomDeps,
  call: KeyCall,
  row: RoomRow,
  { sandboxes }: CheckpointRow,
  sandboxIds: ReadonlyMap<string, SandboxId>,
): Promise<ForkedItem[]> {
  const target = toTarget(row, paths);
  return await Promise.all(
    sandboxes.map((sandbox) =>
      branch.sandboxes.fork(call, target, sandbox, sandboxIds.get(sandbox.sandbox_id) ?? newId("sbx")),
    ),
  );
}

async function copyDrive(deps: RoomDeps, store: string, roomUid: RoomUid, over: AbortSignal): Promise<void> {
  await using copier = new DriveCopier();
  const giveUp = () => copier.giveUp();
  over.addEventListener("abort", giveUp, { once: true });
  try {
    over.throwIfAborted();
    await copier.restore(store, deps.paths.drive(roomUid), deps.driveRoot(roomUid));
  } catch (error) {
    throw over.aborted ? over.reason : error;
  } finally {
    over.removeEventListener("abort", giveUp);
  }
}

/** A path of the former room's API in another. */
export function renamed(path: string, formerIds: readonly string[], roomId: string): string {
  const former = formerIds.map((id) => `/v1/rooms/${encodeURIComponent(id)}/`).find((start) => path.startsWith(start));
  return former === undefined ? path : `/v1/rooms/${encodeURIComponent(roomId)}/${path.slice(former.length)}`;
}

/** Throws insufficient_scope: who makes a room with sandboxes makes those too. */
export function requireSandboxes({ caller: { scopes, agent_id } }: KeyCall): void {
  if (agent_id !== null) {
    throw new ServiceError("insufficient_scope", {
      detail: "The key is bound to an agent, and this is about all of the room's.",
    });
  }
  if (scopes.includes("sandboxes:write") || scopes.includes("org:admin")) return;
  throw new ServiceError("insufficient_scope", {
    detail: "This needs the scope sandboxes:write too, which the key does not have.",
    details: { required: "sandboxes:write" },
  });
}
