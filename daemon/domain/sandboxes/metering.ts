/** Metering of a sandbox: the time in which it is running. Standby, like the time it takes to start, is free. */
import type { SandboxState } from "../../../shared/api/sandboxes.ts";
import type { Queries } from "../../db/client.ts";
import type { Consumer, Meter } from "../orgs/index.ts";
import type { SandboxRow } from "./table.ts";

/** Within a transaction: meters the change from the state in `row` to `state`. */
export function meterState(meter: Meter, queries: Queries, row: SandboxRow, state: SandboxState): void {
  const { sandbox_id, vcpu_count, memory_mib } = row;
  if (state === "running") meter.opens(queries, sandbox_id, placeOf(row), { vcpu_count, memory_mib, drive_bytes: 0 });
  else if (row.state === "running") meter.closes(queries, sandbox_id);
}

/** Its time and its egress are charged to the key that created it; `key_id`: the key of the call for other usage. */
export function placeOf(row: SandboxRow, key_id = row.created_by_id): Consumer {
  const { org_id, room_uid, agent_id } = row;
  return { org_id, room_uid, agent_id, key_id };
}
