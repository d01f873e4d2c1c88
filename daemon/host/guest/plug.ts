/**
 * Plugs a guest's devices, each of which is in its record before: after a crash it would be unknown which device is plugged into which
 * port.
 */
import { REHEARSAL_TAG } from "../../../shared/agent-protocol/messages.ts";
import type { SandboxPaths } from "../../core/config/paths.ts";
import type { VsockEndpoint } from "../guest-link/transports/transport.ts";
import type { Machine } from "../machine/machine.ts";
import type { Recorded } from "./record.ts";
import { driveTag, type Served } from "./serve-drive.ts";

export function plugVsock(
  machine: Machine,
  endpoint: VsockEndpoint,
  _recorded: Recorded<"served"> | Recorded<"vsock_replaced">,
): Promise<void> {
  return machine.plugVsock(endpoint.device);
}

/** The devices with which an unassigned machine rehearses: a drive only if one is served. */
export async function plugStandIns(
  machine: Machine,
  { plan: { paths }, share }: Served,
  endpoint: VsockEndpoint,
  _recorded: Recorded<"rehearsing">,
): Promise<void> {
  await machine.plugVsock(endpoint.device);
  if (share) await machine.plugDrive(paths.virtiofs, REHEARSAL_TAG, 0);
}

/** Into the recorded port. */
export function plugDrive(
  machine: Machine,
  paths: Pick<SandboxPaths, "virtiofs">,
  { drive: { turn } }: Recorded<"served"> | Recorded<"drive_replaced">,
): Promise<void> {
  return machine.plugDrive(paths.virtiofs, driveTag(turn), turn);
}
