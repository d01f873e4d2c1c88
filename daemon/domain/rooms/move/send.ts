/**
 * Move of a room to another host:
 *
 *     the other host is queried for what it can load → the room's drive is copied while it runs
 *     ⇒ its row records the move: no caller reaches it → waiting calls get an error, running calls finish
 *     → its sandboxes are saved, or ended → the database state is read, the copy of the drive is brought up to date,
 *       all of it is sent: the other host has it
 *     ⇒ one change of the cluster directory: the other host owns it
 *     → the other host confirms that it has it → its rows and files here are retired like those of a room that has ended
 *
 * Before that change the room is here, and stays here if anything fails; after it, the room is there. A directory may lose the change, for
 * example in a failover: once it was requested, no caller reaches the room here, and nothing of it is removed, until the other host has
 * replied whether it has it.
 */
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { RoomUid, SandboxId, SnapshotId } from "../../../../shared/ids.ts";
import type { Host } from "../../../cluster/directory.ts";
import { requireLive } from "../../../core/call/room-target.ts";
import { after, monotonicMs, now, timeoutSignal, wallMs } from "../../../core/clock.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { onFullDisk } from "../../../host/files/disk.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { forgetFormerEvents, type Head, headToName } from "../../audit/index.ts";
import { copying } from "../checkpoints/copying.ts";
import { taking, writeState } from "../checkpoints/room-state.ts";
import { retireDirectory } from "../destroy.ts";
import { getRoom, updateRoom } from "../store.ts";
import type { Moving, RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import { Artifacts } from "./artifacts.ts";
import type { MoveDeps } from "./deps.ts";
import { FORMAT } from "./format.ts";
import { packed } from "./pack.ts";
import { aboutOf, recordMove, takeRows } from "./rows.ts";

/** By how much guests may exceed the drive's limits before they are stopped. */
const BEYOND = { bytes: 64 * 1024 ** 2, entries: 10_000 };
/** Log message. */
export const SETTLE_FAILED = "failed to settle the move of a room; will retry";

export interface Departed {
  drive_bytes: number;
  epoch: number;
  sandboxes_ended: string[];
  /** Items without loadable memory there. */
  lost: { snapshots: number; checkpoints: number; recordings: number };
  away_ms: number;
}

/**
 * `isCall`: the move was requested by a call about the room itself. Throws invalid_state, host_unreachable, quota_exceeded, disk_full,
 * cluster_unavailable.
 */
export async function sendRoom(
  deps: MoveDeps,
  row: RoomRow,
  to: Host,
  over: AbortSignal,
  { key_id, isCall, isForced }: { key_id: Moving["key_id"]; isCall: boolean; isForced: boolean },
): Promise<Departed> {
  const { paths, directory, database } = deps;
  const { room_uid } = row;
  const owner = directory.owner(room_uid);
  if (owner?.host_id !== deps.hostId || owner.epoch < row.epoch) throw new ServiceError("room_moving");
  const place = paths.departing(room_uid);
  const { used_bytes } = await deps.drive.measure(toTarget(row, paths));
  await deps.branch.sandboxes.requireBytes(row, { added: used_bytes, freed: used_bytes });
  const { belongings, refused, snapshots, useless } = await lookAhead(deps, row, to, over, isForced);
  await eraseDirectory(place.directory, deps.giveUpSpace);
  await mkdir(place.directory, { recursive: true, mode: 0o700 });
  let claimed = false;
  try {
    return await copying(over, async (copier) => {
      await copier.copy(paths.drive(room_uid), place.store, {
        bytes: row.drive_limit_bytes + BEYOND.bytes,
        entries: deps.driveLimitEntries + BEYOND.entries,
      });
      await faultPoint("move.copied");
      await database.commit((queries) => {
        over.throwIfAborted();
        requireLive(toTarget(getRoom(queries, room_uid) ?? { ...row, state: "destroyed" }, paths));
        updateRoom(queries, room_uid, { branching: { kind: "move", to: to.host_id, epoch: owner.epoch, key_id } });
      });
      const since = monotonicMs();
      await faultPoint("move.noted");
      deps.pauses.begin(room_uid, new ServiceError("room_moving"));
      deps.audit.endRoom(room_uid);
      const how = { refused, isForced };
      const { ended } = await deps.sandboxes.moves.leave(room_uid, how);
      await deps.calls.untilDone(row, isCall ? 1 : 0);
      // Again, for event streams that those calls have started.
      deps.audit.endRoom(room_uid);
      // A call that was in progress may have created another sandbox.
      const last = await deps.sandboxes.moves.leave(room_uid, how);
      const sandboxes_ended = [...ended, ...last.ended];
      await faultPoint("move.saved");
      const { state, about, drive_bytes } = await deps.drive.holding(room_uid, async () => {
        over.throwIfAborted();
        const state = await taking(database, row.org_id, (queries) => takeRows(deps, queries, row));
        const { bytes: drive_bytes } = await copier.complete();
        const other_bytes = await belongings.measure(last.carried);
        const head = await headToName(database, row.org_id);
        const about = aboutOf({ row, epoch: owner.epoch, drive_bytes, other_bytes, head });
        return { state, about, drive_bytes };
      });
      await writeState(place.state, state);
      await faultPoint("move.packed");
      over.throwIfAborted();
      const file = packed(place, { roomd_room: FORMAT, about }, belongings.all(last.carried));
      const { head } = await deps.branch.sandboxes.use(snapshots, () => deps.peers().send(to, room_uid, file, over));
      await faultPoint("move.sent");
      over.throwIfAborted();
      const claiming = {
        kind: "move",
        to: to.host_id,
        epoch: owner.epoch,
        key_id,
        claiming: true,
        claimed_at: now(),
      } as const;
      await database.commit((queries) => updateRoom(queries, room_uid, { branching: claiming }));
      claimed = true;
      const { epoch } = await directory.claim(room_uid, owner.epoch, to.host_id);
      await faultPoint("move.claimed");
      // That host owns it now: whatever hinders it, the room is on the host that the claim named, or on its way there.
      const isThere = await hasIt(deps, to, room_uid, epoch).catch((cause: unknown) => {
        throw new ServiceError("room_moving", { cause });
      });
      if (!isThere) throw new ServiceError("room_moving");
      await faultPoint("move.handed");
      await retireMoved(deps, row, { to: to.host_id, epoch, head });
      const lost = { snapshots: useless, checkpoints: 0, recordings: 0 };
      return { drive_bytes, epoch, sandboxes_ended, lost, away_ms: Math.round(monotonicMs() - since) };
    });
  } catch (error) {
    await settleMove(deps, room_uid, { isClaimed: claimed, to }).catch((cause: unknown) =>
      deps.log.warn(SETTLE_FAILED, { room_uid, error: describeError(cause) }),
    );
    throw error;
  }
}

interface Ahead {
  belongings: Artifacts;
  /** Sandboxes that the other host cannot load, and why. */
  refused: ReadonlyMap<string, string>;
  snapshots: SnapshotId[];
  /** Number of snapshots that the other host cannot load. */
  useless: number;
}

/**
 * While the room runs: determines which files the other host has already, and which machines it can load. Throws invalid_state, disk_full,
 * host_unreachable.
 */
async function lookAhead(
  deps: MoveDeps,
  { room_uid }: RoomRow,
  to: Host,
  over: AbortSignal,
  isForced: boolean,
): Promise<Ahead> {
  const loaded = await deps.sandboxes.moves.loaded(room_uid);
  const ids = loaded.map(({ id }) => id);
  const isSandbox = (id: string): id is SandboxId => id.startsWith("sbx_");
  const belongings = new Artifacts(deps.paths, room_uid);
  const files = await belongings.look(ids.filter(isSandbox));
  if (files.length === 0 && loaded.length === 0) return { belongings, refused: new Map(), snapshots: [], useless: 0 };
  const machines = loaded.map(({ on }) => on);
  const answer = await deps.peers().fits(to, room_uid, { files, machines }, over);
  belongings.without(answer.missing);
  const refused = new Map(ids.flatMap((id, at) => (answer.refused[at] ? [[id, answer.refused[at]] as const] : [])));
  const useless = [...refused].filter(([id]) => !isSandbox(id));
  if (useless.length > 0 && !isForced) throw wouldLose(useless.length, to, useless[0]?.[1] ?? "");
  const snapshots = ids.filter((id): id is SnapshotId => !isSandbox(id));
  return { belongings, refused, snapshots, useless: useless.length };
}

function wouldLose(snapshots: number, { host_id }: Host, why: string): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `The room has ${snapshots} snapshots whose memory cannot be used on ${host_id}: ${why}.`,
    details: { lost: { snapshots, checkpoints: 0, recordings: 0 } },
    hint: "Delete them, or pass force: then sandboxes can be created from their disks only.",
  });
}

/**
 * Determines the owner of a room after an interrupted move, and completes or cancels the move. Resolves with whether the room is here.
 * Rejects with cluster_unavailable; callers retry.
 */
export async function settleMove(
  deps: MoveDeps,
  roomUid: RoomUid,
  { isClaimed = true, to }: { isClaimed?: boolean; to?: Host } = {},
): Promise<boolean> {
  const { directory, database, hostId, paths } = deps;
  const row = getRoom(database.queries, roomUid);
  if (row?.state !== "active" || row.branching?.kind !== "move") {
    await eraseDirectory(paths.departing(roomUid).directory, deps.giveUpSpace);
    return row?.state === "active";
  }
  const { to: goalId, epoch, claiming } = row.branching;
  const otherHost = claiming ? (to ?? directory.host(goalId)) : null;
  if (otherHost && otherHost.state !== "gone" && (await hasIt(deps, otherHost, roomUid, epoch + 1))) {
    await retireMoved(deps, row, { to: goalId, epoch: epoch + 1, head: null });
    return false;
  }
  const owner = isClaimed ? await directory.trueOwner(roomUid) : directory.owner(roomUid);
  const hasNone = otherHost !== null && otherHost.state !== "gone";
  const isForgotten = hasNone && owner?.host_id === goalId;
  // The other host frees the name when the room has ended there, and would still report that it had it; the removal of that host, automatic
  // or not, frees the name too. After days neither is known: the room may have lived and ended there, and the copy here is kept like an
  // ended room's. Before that, a directory that knows neither was set back to before the room's creation, and has nothing of it.
  const freed = owner === null && claiming === true && !hasNone ? await directory.freedBy(roomUid) : null;
  const isRemoved = freed === null ? isRecent(row.branching) : freed.isRemoval || freed.host_id !== goalId;
  const comesBack = owner === null && claiming === true && (hasNone || isRemoved);
  const hasEndedThere = owner === null && claiming === true && !comesBack;
  // A directory that was set back names an owner of an earlier epoch, which has handed the room on since.
  const isOwnedThere = owner !== null && owner.host_id !== hostId && owner.epoch >= row.epoch && !isForgotten;
  if (hasEndedThere || isOwnedThere) {
    const last = owner ?? { host_id: goalId, epoch: epoch + 1 };
    await retireMoved(deps, row, { to: last.host_id, epoch: last.epoch, head: null });
    return false;
  }
  // The other host discarded its copy of the room, and the cluster directory lost that: the directory gets this host as the owner again, in
  // a new epoch.
  const next = isForgotten ? { epoch: Math.max(owner.epoch, row.epoch) + 1 } : comesBack ? returned(goalId, epoch) : {};
  await database.commit((queries) => updateRoom(queries, roomUid, { branching: null, updated_at: now(), ...next }));
  if (comesBack) deps.log.warn("kept a room: the destination of its move does not have it", { room_uid: roomUid });
  deps.pauses.end(roomUid);
  deps.onStays(row);
  deps.sandboxes.moves.stays(roomUid);
  await eraseDirectory(paths.departing(roomUid).directory, deps.giveUpSpace);
  const goal = to ?? directory.host(row.branching.to);
  if (goal)
    void deps
      .peers()
      .settle(goal, roomUid, timeoutSignal(FORGET_MS))
      .catch(() => {});
  return true;
}

/**
 * Moves aside the copy that a previous daemon made of a room whose row does not record the move yet: it is erased with the room's other
 * retired files. Runs before any caller can request a move, which would make its own copy. Never rejects.
 */
export async function putDepartingAside({ paths, log, giveUpSpace }: MoveDeps, roomUid: RoomUid): Promise<void> {
  const { directory } = paths.departing(roomUid);
  if (!existsSync(directory)) return;
  const former = paths.former(roomUid);
  await onFullDisk(giveUpSpace, async () => {
    await mkdir(former, { recursive: true, mode: 0o700 });
    await rename(directory, join(former, crypto.randomUUID()));
  }).catch((error: unknown) =>
    log.warn("failed to remove the copy of a moved room", { room_uid: roomUid, error: describeError(error) }),
  );
}

/** Less than the retention of freed names in the cluster directory (cluster/schema.ts), by any host's clock. */
const NAME_KNOWN_MS = 6 * 86_400_000;

const isRecent = ({ claimed_at }: Moving): boolean =>
  claimed_at !== undefined && wallMs() - Date.parse(claimed_at) < NAME_KNOWN_MS;

/** Row changes for a room if its next host was removed before it confirmed that it has the room. */
function returned(host: string, epoch: number): Partial<RoomRow> {
  const status_message = `The host to which it had moved, ${host}, was removed. The room is as it was when it moved.`;
  return { epoch: epoch + 2, status_reason: "returned", status_message, last_transition_at: now() };
}

/** Whether a host owns or owned a room in this epoch or a later one. Rejects with host_unreachable. */
async function hasIt(deps: MoveDeps, host: Host, roomUid: RoomUid, epoch: number): Promise<boolean> {
  const response = await deps.peers().settle(host, roomUid, timeoutSignal(FORGET_MS));
  return response.epoch >= epoch;
}

/** Timeout for requesting the other host to settle the room, by which it discards an arrival that it does not own. */
const FORGET_MS = 30_000;

/** Retires the remains here of a room that another host owns. */
async function retireMoved(
  deps: MoveDeps,
  row: RoomRow,
  { to, epoch, head }: { to: string; epoch: number; head: Head | null },
): Promise<void> {
  const { database, paths, retentionSeconds } = deps;
  const { room_uid } = row;
  const isKept = retentionSeconds > 0;
  await deps.sandboxes.evacuate(room_uid);
  await eraseDirectory(paths.departing(room_uid).directory, deps.giveUpSpace);
  if (existsSync(paths.room(room_uid))) {
    // A retired directory of an earlier move.
    await eraseDirectory(paths.retired_room(room_uid), deps.giveUpSpace);
    if (isKept) await retireDirectory(deps, room_uid);
    else await deps.erase(row);
  }
  await deps.sandboxes.forgetSnapshots(room_uid);
  await deps.fabric.forget(room_uid);
  await faultPoint("move.retired");
  await database.commit((queries) => {
    const moment = now();
    updateRoom(queries, room_uid, {
      ...{ state: "destroyed", status_reason: "moved", status_message: `The room is on ${to}.`, branching: null },
      drive_until_at: isKept ? after(moment, retentionSeconds) : null,
      ...{ updated_at: moment, last_transition_at: moment },
    });
    deps.forgetCheckpoints(queries, room_uid);
    deps.meter.closes(queries, room_uid);
    forgetFormerEvents(queries, room_uid);
    recordMove(queries, row, "room.moved_out", { to, epoch, head });
  });
  deps.audit.anchor();
  deps.onGone(row);
}
