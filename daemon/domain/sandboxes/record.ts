/** API record of a sandbox's row. Values of its environment are never shown. */
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import type { SandboxRecord } from "../../../shared/api/sandboxes.ts";
import type { ShownPort } from "../../../shared/api/shown-port.ts";
import type { SandboxRow } from "./table.ts";

export function toSandboxRecord(row: SandboxRow, roomId: string, ports: ShownPort[]): SandboxRecord {
  return {
    sandbox_id: row.sandbox_id,
    room_id: roomId,
    agent_id: row.agent_id,
    guest_cid: row.guest_cid,
    template_id: row.template_id,
    template_digest: row.template_digest,
    snapshot_id: row.snapshot_id,
    vcpu_count: row.vcpu_count,
    memory_mib: row.memory_mib,
    state: row.state,
    status: {
      reason: row.status_reason,
      message: row.status_message,
      last_transition_at: row.last_transition_at,
    },
    exit: row.exit_cause === null ? null : { cause: row.exit_cause, at: row.exit_at ?? row.last_transition_at },
    env_keys: Object.keys(row.env).sort(),
    egress: { mode: row.egress_mode, allowlist: row.egress_allowlist, revision: row.egress_revision },
    fabric_attached: row.fabric_attached,
    drive_mount: DRIVE_MOUNT,
    drive: { state: row.drive_fault === null ? "ok" : "degraded", message: row.drive_fault },
    ports,
    labels: row.labels,
    lifecycle: { idle_after_seconds: row.idle_timeout_seconds, on_idle: row.on_idle, wake_on: row.wake_on },
    created_at: row.created_at,
    started_at: row.started_at,
    ready_at: row.ready_at,
    stopped_at: row.stopped_at,
    expires_at: row.expires_at,
    create_wall_ms: row.create_wall_ms,
    boot: row.boot,
    start_mode: row.start_mode,
    created_by: { type: row.created_by_type, id: row.created_by_id },
  };
}
