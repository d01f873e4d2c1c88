/**
 * Owns taking over a guest that a daemon before this one started: the processes are the recorded ones, QEMU answers
 * and has the right name, and the agent that dials again has the nonce that it was set up with.
 */
import { readFileSync } from "node:fs";
import { within } from "../../core/published.ts";
import { connectMachine } from "../machine/machine.ts";
import { endProcess, isAlive, type ProcessRecord } from "../process.ts";
import type { GuestHost, GuestPlan } from "./plan.ts";
import { renewVsock } from "./renew-vsock.ts";
import type { DrivePlace } from "./serve-drive.ts";
import { connectionOf, type Guest, guestOf } from "./start.ts";
import { type GuestParts, type GuestProcesses, vsockAddress } from "./steps.ts";

/** Guests of daemons that did not record it. */
const FIRST_PLACE: DrivePlace = { turn: 0, ports: 2, mounted: true };
const QEMU_DEADLINE_MS = 5_000;
const AGENT_DEADLINE_MS = 15_000;

/** What is recorded of a guest's processes; null when nothing is. */
export function readProcesses(file: string): GuestProcesses | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as GuestProcesses;
  } catch {
    return null;
  }
}

/** Takes over a guest. Throws with why it cannot be; its processes are then still to be ended. */
export async function adoptGuest(host: GuestHost, plan: GuestPlan, startMode: Guest["start_mode"]): Promise<Guest> {
  const processes = readProcesses(plan.paths.processes);
  const { qemu, virtiofsd, vsock } = processes ?? {};
  if (!processes || !qemu || !isAlive(qemu)) throw new Error("its QEMU has ended");
  if (processes.guest_cid !== plan.guest_cid) throw new Error("its record names another CID");
  const connection = connectionOf(host, plan, processes.nonce);
  const parts: GuestParts = {
    plan,
    host,
    mode: processes.mode,
    signal: new AbortController().signal,
    connection,
    drive: processes.drive ?? FIRST_PLACE,
    ...(virtiofsd ? { share: { name: "virtiofsd", ...virtiofsd } } : {}),
  };
  try {
    parts.machine = await within(
      connectMachine(
        plan.image.hardware,
        { name: "qemu", ...qemu },
        {
          sockets: plan.paths,
          console_log: plan.paths.console_log,
        },
      ),
      QEMU_DEADLINE_MS,
      "QEMU's answer",
    );
    const { name } = (await parts.machine.qmp.execute("query-name")) as { name?: string };
    if (name !== plan.sandbox_id) throw new Error(`QEMU says it is ${name}`);
    const address = vsockAddress(host, plan);
    const device = vsock ? { name: "vhost-device-vsock", ...vsock } : null;
    parts.endpoint = await host.transport.adopt(address, device, (link) => connection.accept(link));
    await parts.machine.noteStall();
    // One that stands still cannot dial; when it does, it is asked for its nonce all the same.
    if (!parts.machine.stalled.value) {
      if (device && !isAlive(device)) await renewVsock(parts, parts.signal);
      await connection.link(AGENT_DEADLINE_MS);
    }
    return guestOf(parts, startMode, {});
  } catch (error) {
    connection.close("the sandbox was not taken over");
    await parts.endpoint?.close();
    parts.machine?.qmp.close();
    throw error;
  }
}

/** Ends the processes that a record names. */
export async function endRecorded(processes: GuestProcesses | null): Promise<void> {
  const all = [processes?.qemu, processes?.virtiofsd, processes?.vsock];
  await Promise.all(
    all.map((process: ProcessRecord | null | undefined) => (process ? endProcess(process) : undefined)),
  );
}
