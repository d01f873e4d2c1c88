/**
 * Owns the rehearsal of a machine that waits for its sandbox: it goes through a start once, so that what that runs is translated, and is
 * given its memory.
 *
 *   go on → word on the console → set up ─▶ stand-ins → plug → dialled, mounted → unplug ─▶ stand still
 *                                      └─ late, given up, or nothing to stand in ────────┘
 *
 * The stand-ins are this machine's alone: a vsock whose host says nothing, and a drive that is empty and stays so, since it belongs to a user
 * whom virtiofsd is not. Where virtiofsd is the host's root there is none. Under KVM nothing is translated, and the kernel's vsock
 * can be plugged once: QEMU closes what it was given.
 */
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DEVICES_WANTED_LINE, REHEARSE_LINE, REHEARSED_LINE } from "../../../shared/agent-protocol/messages.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { unlessGivenUp, within } from "../../core/published.ts";
import { describeError } from "../../core/service-error.ts";
import { ownedDirectory } from "../isolation/directories.ts";
import { boundLog, endProcess } from "../process.ts";
import { plugStandIns } from "./plug.ts";
import { type Served, serveDrive } from "./serve-drive.ts";
import type { Launched } from "./start.ts";
import { hostFor, vsockAddress } from "./steps.ts";

/** What a guest has not rehearsed by then it goes without. */
const DEADLINE_MS = 10_000;
/** Of a vhost-user device, which has all of them to itself; no sandbox has it. */
const STAND_IN_CID = 10_000;
/** Of the drive that stands in: to be looked at. */
const READ_ONLY = 0o555;

type Parts = Launched["parts"];

/** Resolves once the machine stands still, soon after `signal` is given. Throws when it is of no use. */
export async function rehearse(parts: Parts, signal: AbortSignal): Promise<void> {
  const { machine, plan, host } = parts;
  const wanted = Promise.withResolvers<"devices">();
  const rehearsed = Promise.withResolvers<"over">();
  let printed = "";
  const unlisten = machine.onConsole((bytes) => {
    printed = (printed + new TextDecoder().decode(bytes)).slice(-1024);
    if (printed.includes(DEVICES_WANTED_LINE)) wanted.resolve("devices");
    if (printed.includes(REHEARSED_LINE)) rehearsed.resolve("over");
  });
  /** No longer than QEMU is there, and nobody waits for the machine. */
  const inTime = (work: Promise<unknown>) => {
    const orEnd = Promise.race([work, machine.process.exited]);
    return unlessGivenUp(signal, within(orEnd, DEADLINE_MS, "the rehearsal")).catch(() => "late");
  };
  try {
    await machine.resume();
    await machine.resizeMemory(plan.memory_mib, plan.image.hardware);
    machine.typeLine(REHEARSE_LINE);
    const heard = await inTime(Promise.race([wanted.promise, rehearsed.promise]));
    const isEmulated = plan.image.hardware.acceleration === "tcg" && host.transport.kind === "vhost-user";
    if (heard === "devices" && isEmulated) await rehearseWithDevices(parts, rehearsed.promise, inTime);
    await machine.pause();
  } finally {
    unlisten();
  }
}

/** Devices that do not come are done without; what is plugged has to go again, or the machine is of no use. */
async function rehearseWithDevices(
  { plan, host: on, machine, record }: Parts,
  rehearsed: Promise<unknown>,
  inTime: (work: Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  const { sandbox_id, paths } = plan;
  const host = hostFor(on, plan.image);
  const root = host.isolation.newDriveRoot(sandbox_id);
  const drive_directory = root === 0 ? null : join(paths.rehearsal, "drive");
  const standIn = { sandbox_id, paths, guest_cid: STAND_IN_CID, drive_directory, drive_limit_bytes: 0 };
  const served: Served = { plan: standIn, host };
  const dialled = Promise.withResolvers<void>();
  let dials = 0;
  // The first stays open, so that the agent does not dial again and again.
  const opening = host.transport.open(vsockAddress(host, standIn), (link) =>
    dials++ === 0 ? dialled.resolve() : link.close("a rehearsal"),
  );
  const serving = drive_directory === null ? null : serveEmpty(served, drive_directory, root);
  let isPlugged = false;
  try {
    const [endpoint] = await Promise.all([opening, serving]);
    const processes = { virtiofsd: served.share ?? null, vsock: endpoint.process };
    const recorded = await record.advance("rehearsing", processes);
    isPlugged = true;
    await plugStandIns(machine, served, endpoint, recorded);
    await faultPoint("pool.rehearsing");
    await inTime(Promise.all([dialled.promise, served.share && rehearsed]));
    await machine.unplugVsock();
    await machine.unplugDrive(0);
  } catch (error) {
    if (isPlugged) throw error;
    host.log.warn("a machine rehearses without devices", { sandbox_id, error: describeError(error) });
  } finally {
    const [endpoint] = await Promise.all([opening.catch(() => null), serving?.catch(() => null)]);
    await Promise.all([served.share && endProcess(served.share), endpoint?.close()]);
    // The sandbox's own virtiofsd is another user, who may not write over what this one has left.
    for (const left of [paths.rehearsal, paths.fs_sockets]) await rm(left, { recursive: true, force: true });
    await record.advance("rehearsed", {});
    boundLog(paths.vmm_log);
  }
}

async function serveEmpty(served: Served, directory: string, root: number): Promise<void> {
  await ownedDirectory(dirname(directory), 0, root);
  await mkdir(directory, { mode: READ_ONLY });
  await serveDrive(served);
}
