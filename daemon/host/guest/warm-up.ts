/**
 * Rehearsal of a machine that waits for its sandbox: it goes through a start once, so that the code that this runs is translated, and is
 * given its memory.
 *
 *     resume → line on the console → set up ─▶ stand-ins → plug → dialled, mounted → unplug ─▶ pause
 *                                           └─ late, cancelled, or no stand-ins ────────────┘
 *
 * The stand-ins are this machine's alone: a vsock device with a silent host, and a drive that is empty and stays so, since it belongs to
 * another user than virtiofsd's. If virtiofsd is the host's root there is no drive. Under KVM nothing is translated, and the kernel's vsock
 * can be plugged once: QEMU closes the descriptor that it was given.
 */
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DEVICES_WANTED_LINE, REHEARSE_LINE, REHEARSED_LINE } from "../../../shared/agent-protocol/messages.ts";
import { unlessGivenUp, within } from "../../core/concurrency/published.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { describeError } from "../../core/service-error.ts";
import { ownedDirectory } from "../isolation/directories.ts";
import { boundLog, endProcess } from "../process.ts";
import { plugStandIns } from "./plug.ts";
import { type Served, serveDrive } from "./serve-drive.ts";
import type { Launched } from "./start.ts";
import { hostFor, vsockAddress } from "./steps.ts";

/** The guest goes without the steps that it has not rehearsed by then. */
const DEADLINE_MS = 10_000;
/** CID on a vhost-user device, which has its own CID space; no sandbox has this CID. */
const STAND_IN_CID = 10_000;
/** Mode of the stand-in drive's directory: read-only. */
const READ_ONLY = 0o555;

type WarmUpParts = Launched["parts"];

/** Resolves once the machine is paused, soon after `signal` is aborted. Throws if it is unusable. */
export async function warmUp(parts: WarmUpParts, signal: AbortSignal): Promise<void> {
  const { machine, plan, host } = parts;
  const devicesRequested = Promise.withResolvers<"devices">();
  const rehearsed = Promise.withResolvers<"over">();
  let printed = "";
  const unlisten = machine.onConsole((bytes) => {
    printed = (printed + new TextDecoder().decode(bytes)).slice(-1024);
    if (printed.includes(DEVICES_WANTED_LINE)) devicesRequested.resolve("devices");
    if (printed.includes(REHEARSED_LINE)) rehearsed.resolve("over");
  });
  /** Until QEMU exits, or a caller waits for the machine. */
  const inTime = (work: Promise<unknown>) => {
    const orEnd = Promise.race([work, machine.process.exited]);
    return unlessGivenUp(signal, within(orEnd, DEADLINE_MS, "the rehearsal")).catch(() => "late");
  };
  try {
    await machine.resume();
    await machine.resizeMemory(plan.memory_mib, plan.image.hardware);
    machine.typeLine(REHEARSE_LINE);
    const outcome = await inTime(Promise.race([devicesRequested.promise, rehearsed.promise]));
    const isEmulated = plan.image.hardware.acceleration === "tcg" && host.transport.kind === "vhost-user";
    if (outcome === "devices" && isEmulated) await rehearseWithDevices(parts, rehearsed.promise, inTime);
    await machine.pause();
  } finally {
    unlisten();
  }
}

/** Works without devices that fail to appear; plugged ones have to be unplugged again, or the machine is unusable. */
async function rehearseWithDevices(
  { plan, host: on, machine, record }: WarmUpParts,
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
  // The first connection stays open, so that the agent does not dial repeatedly.
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
    host.log.warn("failed to set up stand-in devices for a pooled machine; it warms up without devices", {
      sandbox_id,
      error: describeError(error),
    });
  } finally {
    const [endpoint] = await Promise.all([opening.catch(() => null), serving?.catch(() => null)]);
    await Promise.all([served.share && endProcess(served.share), endpoint?.close()]);
    // The sandbox's own virtiofsd is another user, which may not overwrite the leftovers of this one.
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
