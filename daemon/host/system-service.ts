/** roomd as a service of systemd: requests by systemctl. */
import { existsSync } from "node:fs";
import { runProgram } from "./process.ts";

const UNIT = "roomd.service";
/** A stop waits for calls in progress, and a start for the migration of a database. */
const DEADLINE_MS = 20 * 60_000;
const ASK_DEADLINE_MS = 15_000;

/** Whether systemd is process 1 of this host. */
export function hasSystemd(): boolean {
  return existsSync("/run/systemd/system");
}

/** Runs `systemctl VERB… roomd.service`; for `start` and `restart` it is ready then. Throws with systemctl's message. */
export async function serviceDo(...verb: string[]): Promise<void> {
  await runProgram(["systemctl", ...verb, UNIT], DEADLINE_MS);
}

/** Whether systemd is shutting this host down, or restarting it, which ends the service too. False without systemd. */
export async function isHostStopping(): Promise<boolean> {
  if (!hasSystemd()) return false;
  // As root systemctl queries systemd directly: the bus may have ended already.
  const state = await runProgram(["systemctl", "show", "--property=SystemState", "--value"], ASK_DEADLINE_MS);
  return state.trim() === "stopping";
}

/** Makes systemd reload its units. */
export async function reloadUnits(): Promise<void> {
  await runProgram(["systemctl", "daemon-reload"], DEADLINE_MS);
}

/** Removes the slice in which the scopes of sandboxes were; does nothing if it was never made. */
export async function stopSlice(): Promise<void> {
  await runProgram(["systemctl", "stop", "roomd.slice"], DEADLINE_MS).catch(() => {});
}

/** The last lines of the service's log. */
export async function serviceLog(lines: number): Promise<string> {
  return await runProgram(["journalctl", "-u", UNIT, "--no-pager", "-o", "cat", "-n", String(lines)], 30_000);
}
