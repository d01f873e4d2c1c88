/** Operations on all sandboxes of a room for checkpoints: they are cut at one instant, rolled back to it, and forked from it. */
import { rm } from "node:fs/promises";
import type { CheckpointId, RoomUid, SandboxId, SnapshotId } from "../../../../shared/ids.ts";
import type { KeyCall } from "../../../core/call/operation.ts";
import type { RoomTarget } from "../../../core/call/room-target.ts";
import type { Queries } from "../../../db/client.ts";
import { deleteSnapshot, snapshotsOf } from "../snapshots/store.ts";
import type { SnapshotRow } from "../snapshots/table.ts";
import { bytesLeft, type DiskUseBefore, keepSnapshots, requireBytes, requireSpace } from "../snapshots/take.ts";
import { roomSandboxes } from "../store.ts";
import { cutRoom, type RoomCut } from "./cut.ts";
import {
  type BranchParts,
  type CutSandbox,
  type ForkedItem,
  isAtRest,
  itemOf,
  placeOf,
  supervised,
  usingAll,
} from "./parts.ts";
import { startAll } from "./start.ts";
import { type TurnBack, turnBack } from "./turn-back.ts";

export type { CutSandbox, ForkedItem } from "./parts.ts";

const WAIT_MS = 150_000;

export interface SandboxesBranch {
  /** Throws quota_exceeded, disk_full, invalid_state if a cut is impossible now. `bytes`: size of the other data that will be kept. */
  requireSpace(room: RoomTarget, bytes: number): Promise<DiskUseBefore>;
  /** Throws quota_exceeded, disk_full if there is no space for a drive that replaces another. */
  requireBytes(room: Pick<RoomTarget, "org_id">, bytes: { added: number; freed?: number }): Promise<void>;
  /** Bytes that may still be written, in addition to `written`, which are on disk and not counted yet. */
  bytesLeft(room: Pick<RoomTarget, "org_id">, written: number): Promise<number>;
  /** If it throws, nothing of the cut remains and all continue: invalid_state, guest_unreachable, disk_full, and errors of its parts. */
  cut<T, R>(call: KeyCall, room: RoomTarget, request: RoomCut<T, R>): Promise<R>;
  /** Sandboxes that take part in a cut. */
  guests(roomUid: RoomUid): SandboxId[];
  /** Within the transaction that creates the checkpoint; `bytes`: size of its other data. Throws quota_exceeded. */
  keep(queries: Queries, room: RoomTarget, used: DiskUseBefore, snapshots: readonly SnapshotRow[], bytes: number): void;
  /** Rolls the sandboxes back: afterwards each hibernates in its state of the checkpoint, and no other sandbox exists. */
  turnBack(call: KeyCall, room: RoomTarget, turning: TurnBack): Promise<void>;
  /** Runs the sandboxes as before, under the ids of `as`; resolves once each runs or has failed. */
  start(
    call: KeyCall,
    room: RoomTarget,
    sandboxes: readonly CutSandbox[],
    as: ReadonlyMap<string, SandboxId>,
  ): Promise<ForkedItem[]>;
  /** Resolves once no sandbox of the room is in a transitional state. */
  untilAtRest(roomUid: RoomUid): Promise<void>;
  /** The room's current sandboxes. */
  items(room: RoomTarget): ForkedItem[];
  /** Protects these snapshots from deletion during `work`. */
  use<T>(snapshotIds: readonly SnapshotId[], work: () => Promise<T>): Promise<T>;
  /** Within the transaction that removes the checkpoint. Throws snapshot_in_use. */
  forget(queries: Queries, checkpointId: CheckpointId): void;
  /** Size of the checkpoint's snapshots on disk. */
  bytesOf(queries: Queries, checkpointId: CheckpointId): number;
  remove(roomUid: RoomUid, snapshotIds: readonly SnapshotId[]): Promise<void>;
}

export function makeSandboxesBranch(parts: BranchParts): SandboxesBranch {
  const { deps, supervisors, places } = parts;
  return {
    requireSpace: async (room, bytes) =>
      requireSpace(deps, room, await supervised(parts, room), { mode: "full", bytes }),
    requireBytes: ({ org_id }, bytes) => requireBytes(deps, org_id, bytes),
    bytesLeft: ({ org_id }, written) => bytesLeft(deps, org_id, written),
    cut: (call, room, request) => cutRoom(parts, call, room, request),
    guests: (roomUid) =>
      roomSandboxes(deps.database.queries, roomUid)
        .filter(({ state }) => state !== "failed")
        .map(({ sandbox_id }) => sandbox_id),
    keep: (queries, room, used, snapshots, bytes) => keepSnapshots(deps, queries, room, used, snapshots, bytes),
    turnBack: (call, room, turning) => turnBack(parts, call, room, turning),
    start: (call, room, sandboxes, as) => startAll(parts, call, room, sandboxes, as),
    untilAtRest: async (roomUid) => {
      for (const { sandbox_id } of roomSandboxes(deps.database.queries, roomUid)) {
        const supervisor = supervisors.get(sandbox_id);
        await supervisor?.adopted();
        await supervisor?.published
          .until(({ state }) => isAtRest(state) || state === "failed" || state === "destroyed", WAIT_MS)
          .catch(() => {});
      }
    },
    items: (room) =>
      roomSandboxes(deps.database.queries, room.room_uid).flatMap(({ sandbox_id }) => {
        const supervisor = supervisors.get(sandbox_id);
        return supervisor ? [itemOf(parts, room, supervisor)] : [];
      }),
    use: (snapshotIds, work) => usingAll(places, snapshotIds, work),
    forget: (queries, checkpointId) => {
      for (const { snapshot_id } of snapshotsOf(queries, checkpointId)) {
        places.requireUnused(snapshot_id);
        deleteSnapshot(queries, snapshot_id);
      }
    },
    bytesOf: (queries, checkpointId) =>
      snapshotsOf(queries, checkpointId).reduce((sum, { size_bytes }) => sum + size_bytes, 0),
    remove: async (room_uid, snapshotIds) => {
      for (const id of snapshotIds) {
        await rm(placeOf(parts, { room_uid }, id).files.directory, { recursive: true, force: true });
      }
    },
  };
}
