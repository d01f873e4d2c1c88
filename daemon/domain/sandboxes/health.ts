/** Shows faults of a running guest in its sandbox's record. The state remains `running`. */
import type { Fault, Health } from "../../host/guest/sidecars.ts";
import type { SandboxRow } from "./table.ts";

export const STANDBY_MESSAGE = "The sandbox is paused until it is resumed.";

export const HIBERNATED_MESSAGE = "The sandbox is on disk until it is resumed.";

/** Message of a sandbox that rests because it was idle. */
export const IDLE_MESSAGES = {
  standby: "The sandbox was idle, and is paused until it is resumed.",
  hibernate: "The sandbox was idle, and is on disk until it is resumed.",
} as const;

/** `status.reason` while the guest is paused because the host's disk is full. */
export const STALLED_REASON = "disk_full";
const STALLED_MESSAGE = "The host's disk is full. The guest is paused, and continues once there is space.";

/** `status.reason` while a running guest of the previous daemon cannot be adopted because the host lacks a resource. */
export const LEFT_REASON = "not_taken_over";

/** `status.reason` of a sandbox that was saved because its host was shut down: it is resumed when the service starts. */
export const HOST_SHUTDOWN = "host_shutdown";
/** `status.reason` of a sandbox that was saved because its room is moving: it is resumed on the room's host. */
export const ROOM_MOVED = "room_moved";
/** Sandboxes with these reasons are resumed by the daemon. */
export const RESUMED_REASONS: readonly string[] = [HOST_SHUTDOWN, ROOM_MOVED];
/** `status.reason` of a sandbox that could not be saved: its message contains the reason, even after the host has ended it. */
export const NOT_SAVED = "not_saved";

const FAULT_REASONS: readonly string[] = ["drive_degraded", "vsock_lost"] satisfies Fault["reason"][];

/** The changes by which the row shows the health; empty if it does already. */
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

/** Row change for a guest that QEMU has paused, or that runs again. */
export function stalledChange(row: SandboxRow, stands: boolean): Partial<SandboxRow> {
  if (row.state !== "running") return {};
  return stands
    ? { status_reason: STALLED_REASON, status_message: STALLED_MESSAGE }
    : { status_reason: "ready", status_message: "The sandbox is running." };
}

/** The guest keeps running but is unreachable: it could not be adopted yet. */
export function leftChange(row: SandboxRow, why: string): Partial<SandboxRow> {
  const status_message = `The guest runs, but cannot be reached until roomd has adopted it: ${why}`.slice(0, 1000);
  return row.status_message === status_message ? {} : { status_reason: LEFT_REASON, status_message };
}

/** It was adopted after all. */
export function takenChange(row: SandboxRow): Partial<SandboxRow> {
  if (row.status_reason !== LEFT_REASON && row.status_reason !== NOT_SAVED) return {};
  const status_message = row.state === "paused" ? STANDBY_MESSAGE : "The sandbox is running.";
  return { status_reason: "taken_over", status_message };
}

/** The message for a guest that could not be adopted: if the host's shutdown has ended it, the reason why it was not saved. */
export function lostMessage({ status_reason, status_message, state }: SandboxRow, why: string): string {
  if (status_reason === NOT_SAVED) return status_message;
  if (status_reason === HOST_SHUTDOWN && state === "hibernating") {
    return "The host went down before the sandbox was saved.";
  }
  return `The guest could not be adopted after a restart: ${why}.`;
}
