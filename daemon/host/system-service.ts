/** Owns roomd as a service of systemd: asking for it by systemctl. */
import { existsSync } from "node:fs";
import { runProgram } from "./process.ts";

const UNIT = "roomd.service";
/** What stops it waits for calls under way, and what starts it for a database that is brought up to date. */
const DEADLINE_MS = 20 * 60_000;
const ASK_DEADLINE_MS = 15_000;

/** Whether systemd is process 1 of this host. */
export function hasSystemd(): boolean {
  return existsSync("/run/systemd/system");
}

/** Runs `systemctl VERB… roomd.service`; for `start` and `restart` it is ready then. Throws with what systemctl said. */
export async function serviceDo(...verb: string[]): Promise<void> {
  await runProgram(["systemctl", ...verb, UNIT], DEADLINE_MS);
}

/** Whether systemd is shutting this host down, or restarting it: then that is what ends the service too. False without systemd. */
export async function isHostStopping(): Promise<boolean> {
  if (!hasSystemd()) return false;
  // As root systemctl asks systemd itself: the bus may have ended already.
  const state = await runProgram(["systemctl", "show", "--property=SystemState", "--value"], ASK_DEADLINE_MS);
  return state.trim() === "stopping";
}

/** Has systemd read its units again. */
export async function reloadUnits(): Promise<void> {
  await runProgram(["systemctl", "daemon-reload"], DEADLINE_MS);
}

/** Takes away the slice in which the scopes of sandboxes were; one that was never made is none. */
export async function stopSlice(): Promise<void> {
  await runProgram(["systemctl", "stop", "roomd.slice"], DEADLINE_MS).catch(() => {});
}

/** The last lines of the service's log. */
export async function serviceLog(lines: number): Promise<string> {
  return await runProgram(["journalctl", "-u", UNIT, "--no-pager", "-o", "cat", "-n", String(lines)], 30_000);
}
