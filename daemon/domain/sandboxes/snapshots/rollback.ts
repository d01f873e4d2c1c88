/** Rolls a sandbox back to a snapshot. daemon/host/guest/restore.ts replaces its saved state. */
import { sandboxRollback } from "../../../../shared/api/snapshots.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { requireRestorable } from "../../../host/guest/restore.ts";
import { admitAgain } from "../calls/resume.ts";
import type { SandboxDeps } from "../deps.ts";
import { requireDrive } from "../drive-held.ts";
import type { Completions } from "../executions/completion.ts";
import { findTarget } from "../find.ts";
import { makingRoom } from "../lifecycle/admission.ts";
import { requireState } from "../lifecycle/state.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import { toSandboxRecord } from "../record.ts";
import type { SandboxRow } from "../table.ts";
import { requireSnapshot } from "./get.ts";
import type { SnapshotPlaces } from "./place.ts";
import type { SnapshotRow } from "./table.ts";

export function makeRollback(
  deps: SandboxDeps,
  supervisors: Supervisors,
  places: SnapshotPlaces,
  ends: Pick<Completions, "rolledBack">,
): Bound {
  return bind(sandboxRollback, {
    find: (call, params) => findTarget(deps, call, params),
    run: async (call, { snapshot_id }, { room, row }) => {
      requireActive(room);
      const snapshot = requireSnapshot(deps, call, room, snapshot_id);
      requireState(row, ["running", "paused", "hibernated"]);
      requireFits(row, snapshot);
      requireDrive(deps, row);
      deps.credits.admit(deps.database.queries, row.org_id);
      const supervisor = supervisors.get(row.sandbox_id);
      if (!supervisor) throw new ServiceError("guest_unreachable");
      call.audit.details = { snapshot_id, before: row.snapshot_id };
      const place = places.of(snapshot);
      const change = { snapshot_id: snapshot.snapshot_id };
      const hear = {
        admit: admitAgain(supervisors, row, (queries, added) => {
          deps.quota.admit(queries, call, added);
        }),
        onEnded: () => ends.rolledBack(row.sandbox_id),
      };
      const changed = await places.use(snapshot.snapshot_id, async () => {
        await requireRestorable(place.files);
        const turn = () => supervisor.rollback(place, change, hear);
        return await supervisors.use(row.sandbox_id, () => makingRoom(deps.pool, row.memory_mib, turn));
      });
      return { outcome: "ok", body: toSandboxRecord(changed, room.room_id, deps.portsOf(changed.sandbox_id)) };
    },
  });
}

/** Throws snapshot_incompatible with the difference. */
function requireFits(row: SandboxRow, snapshot: SnapshotRow): void {
  const refuse = (differs: string, detail: string) =>
    new ServiceError("snapshot_incompatible", {
      detail,
      details: { differs },
      hint: "Create a sandbox from the snapshot instead.",
    });
  if (snapshot.mode !== "full") throw refuse("mode", "The snapshot has only a disk, from which sandboxes boot.");
  if (snapshot.template_digest !== row.template_digest) {
    throw refuse(
      "template",
      `The snapshot is of template ${snapshot.template_id}, and the sandbox of another version or template.`,
    );
  }
  if (snapshot.memory_mib !== row.memory_mib) {
    throw refuse("memory_mib", `The snapshot has ${snapshot.memory_mib} MiB of memory, the sandbox ${row.memory_mib}.`);
  }
  if (snapshot.vcpu_count !== row.vcpu_count) {
    throw refuse("vcpu_count", `The snapshot has ${snapshot.vcpu_count} processors, the sandbox ${row.vcpu_count}.`);
  }
}
