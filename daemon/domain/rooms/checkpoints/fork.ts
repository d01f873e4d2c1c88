/**
 * Makes another room from a checkpoint:
 *
 *     its directory, marked as unborn → its drive → its messages, barriers and agents, in many commits
 *     ⇒ one commit: its row, which makes all of that part of a room
 *     → its sandboxes run (start.ts)
 *
 * A starting daemon removes unborn rooms, and continues rooms that have a row.
 */
import { rm, writeFile } from "node:fs/promises";
import { newId, type SandboxId } from "../../../../shared/ids.ts";
import { actorOf, type KeyCall } from "../../../core/call/operation.ts";
import { after, now, wallMs } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { ownRows } from "../../../db/room-rows.ts";
import { violatesUnique } from "../../../db/transact.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { appendAudit } from "../../audit/index.ts";
import { inUse, makeDirectories, newRoom, placing } from "../create.ts";
import type { RoomDeps } from "../deps.ts";
import type { RoomRecords } from "../record.ts";
import { insertRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import { copying } from "./copying.ts";
import type { Locks } from "./locks.ts";
import { giveNouns, readState, stageNouns } from "./room-state.ts";
import { type Started, starting, startRoom } from "./start.ts";
import type { CheckpointRow } from "./table.ts";

interface ForkParts {
  deps: RoomDeps;
  records: RoomRecords;
  locks: Locks;
  schedule(row: RoomRow): void;
}

/** Throws room_id_in_use, quota_exceeded, disk_full, room_destroying. */
export async function forkRoom(
  parts: ForkParts,
  call: KeyCall,
  source: RoomRow,
  checkpoint: CheckpointRow,
  room_id: string,
  over: AbortSignal,
): Promise<Started> {
  const { deps } = parts;
  const { paths, branch } = deps;
  const { checkpoint_id, sandboxes } = checkpoint;
  const place = paths.checkpoint(source.room_uid, checkpoint_id);
  const as = new Map<string, SandboxId>(sandboxes.map(({ sandbox_id }) => [sandbox_id, newId("sbx")]));
  const made = newRoom(deps, call, room_id, source.labels);
  const row: RoomRow = {
    ...made,
    drive_limit_bytes: source.drive_limit_bytes,
    expires_at: sameLife(source, made.created_at),
    former_ids: [...new Set([source.room_id, ...source.former_ids])].filter((former) => former !== room_id),
    branching: starting(checkpoint, call, as),
  };
  const { room_uid, org_id } = row;
  const pausedMs = Math.max(0, wallMs() - Date.parse(checkpoint.cut_at));
  const room = { room_uid, org_id, pausedMs, rows: ownRows(room_uid) };
  await branch.sandboxes.requireBytes(row, { added: checkpoint.drive_bytes });
  // Also when the room is inserted: nothing is copied in vain.
  deps.quota.require(deps.database.queries, org_id, { rooms: 1 });
  let warnings: string[];
  try {
    await makeDirectories(deps, row);
    await writeFile(paths.unborn(room_uid), "", { mode: 0o600 });
    await syncDirectory(paths.room(room_uid));
    await copying(over, (copier) =>
      copier.restore({
        ...{ store: place.drive, drive: paths.drive(room_uid), links: paths.drive_links(room_uid) },
        root: deps.driveRoot(room_uid),
      }),
    );
    await faultPoint("fork.drive");
    const state = await readState(place.state);
    await stageNouns(branch.nouns, state.nouns, room, { over, isOther: true, requiresSpace: true });
    await faultPoint("fork.rows");
    const pathOf = (path: string) => renamed(path, [source.room_id, ...source.former_ids], room_id);
    await branch.calls.replace(state.calls, { ...room, sandboxIds: as, pathOf });
    warnings = await placing(deps, row, (queries) => {
      over.throwIfAborted();
      insertRoom(queries, row);
      giveNouns(queries, branch.nouns, state.nouns, room, "put");
      call.work.note({ room_uid, checkpoint_id });
      const { caller, source: door, request_id, ip } = call;
      appendAudit(queries, {
        ...{
          event: "room.created",
          outcome: "success",
          at: now(),
          actor: actorOf(caller),
          source: door,
          request_id,
          ip,
        },
        ...{ org_id, room_id, room_uid, details: { of_room: source.room_id, checkpoint_id } },
      });
      return deps.quota.admit(queries, call, { rooms: 1 });
    });
  } catch (error) {
    deps.driveQuota.end(paths.drive(room_uid));
    await deps.fabric.forget(room_uid);
    await branch.calls.remove(as.values());
    await eraseDirectory(paths.room(room_uid), deps.giveUpSpace);
    throw violatesUnique(error, "rooms.room_id") ? inUse(room_id) : error;
  }
  await faultPoint("fork.made");
  await rm(paths.unborn(room_uid), { force: true });
  parts.schedule(row);
  const { room: record, items } = await parts.locks.take(room_uid, "made", () =>
    startRoom(parts, call, row, checkpoint, as),
  );
  return { room: { ...record, warnings: [...warnings, ...record.warnings] }, items };
}

/** A room with a limited lifetime yields rooms with the same lifetime. */
function sameLife({ created_at, expires_at }: RoomRow, from: string): string | null {
  if (expires_at === null) return null;
  return after(from, Math.round((Date.parse(expires_at) - Date.parse(created_at)) / 1000));
}

/** Replaces a former room's id in an API path by the new room's. */
export function renamed(path: string, formerIds: readonly string[], roomId: string): string {
  const former = formerIds.map((id) => `/v1/rooms/${encodeURIComponent(id)}/`).find((start) => path.startsWith(start));
  return former === undefined ? path : `/v1/rooms/${encodeURIComponent(roomId)}/${path.slice(former.length)}`;
}

/** Throws insufficient_scope: a key that is bound to one agent has no access to operations on all agents of a room. */
export function requireWholeRoom({ caller: { agent_id } }: KeyCall): void {
  if (agent_id === null) return;
  throw new ServiceError("insufficient_scope", {
    detail: "The key is bound to an agent, and the call concerns all agents of the room.",
  });
}

/** Throws insufficient_scope: a caller that makes a room with sandboxes needs the scope for those too. */
export function requireSandboxes(call: KeyCall): void {
  requireWholeRoom(call);
  const { scopes } = call.caller;
  if (scopes.includes("sandboxes:write") || scopes.includes("org:admin")) return;
  throw new ServiceError("insufficient_scope", {
    detail: "The call also needs the scope sandboxes:write, which the key does not have.",
    details: { required: "sandboxes:write" },
  });
}
