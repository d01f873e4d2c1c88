/**
 * Adoption of a guest that an earlier daemon started: the processes are the recorded ones, QEMU answers and is the one that was started,
 * and the agent that dials again has the nonce of its setup. We prove ourselves to it first. A paused guest dials when it is resumed.
 */
import { OLDEST_GENERATION, PROOF_GENERATION } from "../../../shared/agent-protocol/messages.ts";
import { DeadlineError, within } from "../../core/concurrency/published.ts";
import type { GuestConnection } from "../guest-link/connection.ts";
import { firstPortOf } from "../guest-link/transports/choose.ts";
import { connectMachine, type Machine } from "../machine/machine.ts";
import { isAlive, type ProcessRecord } from "../process.ts";
import { wake } from "../virtiofs/throttle.ts";
import type { GuestHost, GuestPlan } from "./plan.ts";
import { type GuestRecord, RecordFile, readRecord } from "./record.ts";
import { hasLostVsock, replaceVsock } from "./replace-vsock.ts";
import { connectionOf, type Guest, guestOf } from "./start.ts";
import { type GuestParts, vsockAddress } from "./steps.ts";

const QEMU_DEADLINE_MS = 10_000;
/** Message of the error for a guest without a live QEMU. */
export const QEMU_ENDED = "its QEMU has ended";
/**
 * A guest whose vsock device reported the earlier daemon's end dials within a second; one with the quirk end_untold may never. A
 * replacement device costs 0.2 s.
 */
const DIAL_DEADLINE_MS = 2_000;
/** A guest that has dialled over a replacement device, and then sends nothing, has lost that device too. */
const GREETING_DEADLINE_MS = 10_000;
/** How long the agent of a running guest may be silent. */
const AGENT_DEADLINE_MS = 30_000;

/** State of the guest when its daemon ended, according to its row. */
export type AdoptedAs = "running" | "paused" | "either";

/**
 * Adopts a guest; `paused` is the state in which it was found, or to which it was brought back. Throws the reason if it cannot be adopted,
 * or on cancellation; its processes are then still to be ended. Throws not_ready if it runs but cannot be adopted now: nothing was touched.
 */
export async function adoptGuest(
  hostNow: () => GuestHost,
  plan: GuestPlan,
  startMode: Guest["start_mode"],
  as: AdoptedAs,
  signal: AbortSignal,
): Promise<{ guest: Guest; paused: boolean }> {
  const recorded = readRecord(plan.paths.processes);
  const { qemu, virtiofsd, vsock } = recorded ?? {};
  if (!recorded || !qemu || !isAlive(qemu)) throw new Error(QEMU_ENDED);
  if (recorded.guest_cid !== plan.guest_cid) throw new Error("its record names another CID");
  const now = hostNow();
  // The guest's own transport, whichever kind new guests get: the kernel's vsock has no process.
  const { nonce, secret } = recorded;
  const generation = generationOf(recorded);
  const host = { ...now, transport: now.transportOf(vsock ? "vhost-user" : "kernel", firstPortOf(generation)) };
  // First: QEMU may be blocked on virtiofsd, and then answers no request.
  if (virtiofsd) wake(virtiofsd);
  const connection = connectionOf(host, plan, { generation, nonce, secret });
  const parts: GuestParts = {
    plan,
    host,
    signal,
    connection,
    record: new RecordFile(plan.paths.processes, recorded),
    ...(virtiofsd ? { share: { name: "virtiofsd", ...virtiofsd } } : {}),
  };
  try {
    const machine = await within(meetMachine(parts, qemu), QEMU_DEADLINE_MS, "QEMU's answer");
    // The cancellation may wait until QEMU's written data are on disk.
    await machine.cancelSave();
    const { found, paused } = await within(leadMachine(machine, as), QEMU_DEADLINE_MS, "QEMU's answer");
    const address = vsockAddress(host, plan);
    const device = vsock ? { name: "vhost-device-vsock", ...vsock } : null;
    parts.endpoint = await host.transport.adopt(address, device, (link) => connection.accept(link));
    // A paused or stalled guest cannot dial; when it does, its nonce is checked anyway.
    if (!paused && found !== "stalled") {
      await meetAgent(parts, found === "running" && (!device || isAlive(device)), signal);
    }
    return { guest: guestOf(parts, startMode, {}), paused };
  } catch (error) {
    connection.close("the sandbox was not adopted");
    await parts.endpoint?.close();
    parts.machine?.qmp.close();
    throw error;
  }
}

/** Generation of its agent. Records of older daemons do not contain it: if they have a secret, the agent supports secrets. */
function generationOf({ machine, secret }: GuestRecord): number {
  return machine?.agent_generation ?? (secret === null ? OLDEST_GENERATION : PROOF_GENERATION);
}

/** Waits for the agent to dial; if it cannot, because its vsock device was lost, the device is replaced. */
async function meetAgent(parts: GuestParts, mayDial: boolean, signal: AbortSignal): Promise<void> {
  const { connection } = parts;
  for (const patienceMs of [mayDial ? DIAL_DEADLINE_MS : 0, GREETING_DEADLINE_MS]) {
    if (patienceMs > 0 && (await isLinked(connection, patienceMs, signal))) return;
    // One after another: if many guests are adopted together, the later ones get the time that they need to dial.
    await parts.host.renewals.put(async () => {
      if (!signal.aborted && !connection.isGreeted && hasLostVsock(parts)) await replaceVsock(parts, signal);
    });
  }
  await connection.link(AGENT_DEADLINE_MS, signal);
}

/** False at the deadline; throws if the connection has failed, or on cancellation. */
async function isLinked(connection: GuestConnection, deadlineMs: number, signal: AbortSignal): Promise<boolean> {
  try {
    await connection.link(deadlineMs, signal);
    return true;
  } catch (error) {
    if (!(error instanceof DeadlineError) || signal.aborted) throw error;
    return false;
  }
}

/** Connects to QEMU, and verifies its identity. */
async function meetMachine(parts: GuestParts, qemu: ProcessRecord): Promise<Machine> {
  const { plan, record } = parts;
  const at = { sockets: plan.paths, console_log: plan.paths.console_log };
  const machine = await connectMachine({ name: "qemu", ...qemu }, at);
  parts.machine = machine;
  const { name } = (await machine.qmp.execute("query-name")) as { name?: string };
  if (name !== plan.sandbox_id) throw new Error(`QEMU reports the name ${name}`);
  const { UUID } = (await machine.qmp.execute("query-uuid")) as { UUID?: string };
  if (record.now.uuid !== undefined && UUID !== record.now.uuid) throw new Error(`QEMU reports the UUID ${UUID}`);
  return machine;
}

/** Brings its guest into the expected state, or reports its state. */
async function leadMachine(
  machine: Machine,
  as: AdoptedAs,
): Promise<{ found: "running" | "paused" | "stalled"; paused: boolean }> {
  const found = await machine.find();
  // A guest that stalled on its way to standby, or in it, continues when it is resumed.
  const paused = as === "either" ? found !== "running" : as === "paused";
  if (paused && found === "running") await machine.pause();
  if (!paused && found === "paused") await machine.resume();
  return { found, paused };
}
