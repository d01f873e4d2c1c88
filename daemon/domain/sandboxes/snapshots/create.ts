/** Takes a snapshot of a sandbox. daemon/host/guest/save.ts saves its guest. */
import { snapshotCreate } from "../../../../shared/api/snapshots.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import { findTarget } from "../find.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { SnapshotPlaces } from "./place.ts";
import { toSnapshotRecord } from "./record.ts";
import type { SnapshotRow } from "./table.ts";
import { takeSnapshot } from "./take.ts";

export function makeSnapshotCreate(
  deps: SandboxDeps,
  supervisors: Supervisors,
  places: SnapshotPlaces,
  onTaken: (row: SnapshotRow) => void,
): Bound {
  return bind(snapshotCreate, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (call, input, { room, row }) => {
      requireActive(room);
      requireState(row, input.mode === "disk" ? ["running"] : ["running", "hibernated"]);
      const supervisor = supervisors.get(row.sandbox_id);
      if (!supervisor) throw new ServiceError("guest_unreachable");
      const taken = await takeSnapshot({ deps, supervisors, places }, call, room, supervisor, input);
      onTaken(taken);
      const { snapshot_id, mode, size_bytes, paused_ms } = taken;
      call.audit.details = { snapshot_id, mode, size_bytes, paused_ms, parent: taken.parent };
      return { outcome: "created", body: toSnapshotRecord(taken, room.room_id) };
    },
  });
}
