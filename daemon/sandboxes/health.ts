/** Owns how what is amiss with a guest shows in its sandbox's record. The state is not touched: the guest runs. */
import type { Fault, Health } from "../host/guest/parts.ts";
import type { SandboxRow } from "./table.ts";

/** `status.reason` while the guest stands still for want of space on the host's disk. */
export const STALLED_REASON = "disk_full";
const STALLED_MESSAGE = "The host's disk is full: the guest stands still, and goes on once there is space.";

const FAULT_REASONS: readonly string[] = ["drive_degraded", "vsock_lost"] satisfies Fault["reason"][];

/** What of the row has to change so that it shows the health; nothing when it does. */
export function healthChange(row: SandboxRow, { drive, vsock }: Health): Partial<SandboxRow> {
  const fault = vsock ?? drive;
  const change: Partial<SandboxRow> = {};
  if (row.drive_fault !== (drive?.message ?? null)) change.drive_fault = drive?.message ?? null;
  if (row.state === "running" && fault && row.status_message !== fault.message) {
    Object.assign(change, { status_reason: fault.reason, status_message: fault.message });
  } else if (row.state === "running" && !fault && FAULT_REASONS.includes(row.status_reason)) {
    Object.assign(change, { status_reason: "recovered", status_message: "The sandbox is running." });
  }
  return change;
}

/** The guest stands still of itself, or goes on again. */
export function stalledChange(row: SandboxRow, stands: boolean): Partial<SandboxRow> {
  if (row.state !== "running") return {};
  return stands
    ? { status_reason: STALLED_REASON, status_message: STALLED_MESSAGE }
    : { status_reason: "ready", status_message: "The sandbox is running." };
}
