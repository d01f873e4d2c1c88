/** Current resource use of many sandboxes, measured from outside: two kernel files per sandbox, and no data from the guest. */
import type { TopItem } from "../../../shared/api/overview/top.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { diskUse } from "../../host/guest/saved-state.ts";
import { usageOfProcess } from "../../host/usage.ts";
import type { SandboxDeps } from "./deps.ts";
import type { Supervisors } from "./lifecycle/supervisors.ts";
import { type ListedSandbox, listUndestroyed } from "./store.ts";

/** Which sandboxes to measure; null: all. */
export interface Measured {
  org_id: OrgId;
  room_uids: readonly RoomUid[] | null;
  agent_id: string | null;
}

export function makeMeasure(deps: SandboxDeps, supervisors: Supervisors) {
  const measure = (room_id: string, { agent_id, sandbox_id, state, ...row }: ListedSandbox): TopItem => {
    const pid = supervisors.get(sandbox_id)?.guest?.machine.process.pid;
    const use = pid === undefined ? null : unlessGone(() => usageOfProcess(pid));
    const { sent_bytes, received_bytes, open_connections } = deps.egress.trafficOf(sandbox_id);
    return {
      room_id,
      agent_id,
      sandbox_id,
      state,
      ready_at: row.ready_at,
      cpu: { vcpu_count: row.vcpu_count, used_seconds: use?.cpu_seconds ?? null },
      memory: { memory_mib: row.memory_mib, resident_bytes: use?.resident_bytes ?? null },
      disk: { used_bytes: diskUse(deps.paths.sandbox(sandbox_id)) },
      egress: { sent_bytes, received_bytes, open_connections },
    };
  };

  /** At most `limit` of them, failed ones last; `more`: the number of the others. */
  return async (scope: Measured, limit: number): Promise<{ items: TopItem[]; more: number }> => {
    const rows = listUndestroyed(deps.database.queries, scope);
    const rooms = new Map<RoomUid, string>();
    const items: TopItem[] = [];
    const pieces = new Pieces(loopTime, loopTime.owner, "host.processes");
    for (const row of rows.slice(0, limit)) {
      const turn = pieces.next();
      if (turn) await turn;
      const room_id = rooms.get(row.room_uid) ?? deps.currentRoom(row.room_uid).room_id;
      rooms.set(row.room_uid, room_id);
      items.push(measure(room_id, row));
    }
    return { items, more: rows.length - items.length };
  };
}

function unlessGone<T>(look: () => T): T | null {
  try {
    return look();
  } catch {
    return null;
  }
}
