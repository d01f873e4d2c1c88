/**
 * Gives a running guest its drive back after its virtiofsd has died.
 *
 *     detach in the guest → start another → plug it into the next port → mount in the guest
 *
 * The dead device stays plugged: its unplugging never completes, and would block all later plugging.
 */
import { DRIVE_MOUNT } from "../../../shared/api/drive.ts";
import { unlessGivenUp } from "../../core/concurrency/published.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { describeError } from "../../core/service-error.ts";
import { loseDrive, mountDrive } from "../guest-link/drive.ts";
import { endProcess, isAlive } from "../process.ts";
import { plugDrive } from "./plug.ts";
import { driveTag, serveDrive } from "./serve-drive.ts";
import type { GuestParts } from "./steps.ts";

const LINK_DEADLINE_MS = 30_000;

/** All drive ports of the guest are used up. */
export class NoPortError extends Error {
  override name = "NoPortError";
}

/** Throws NoPortError, or the failure: a retry then continues. */
export async function replaceVirtiofsd(parts: GuestParts, signal: AbortSignal): Promise<void> {
  const { machine, connection } = parts;
  if (!machine) throw new Error("there is no machine to plug into");
  await machine.running(signal);
  const link = await connection.link(LINK_DEADLINE_MS, signal);
  if (!parts.record.now.drive.mounted || !parts.share || !isAlive(parts.share)) {
    await unlessGivenUp(signal, loseDrive(link));
    await plugNext(parts, signal);
  }
  const { turn } = parts.record.now.drive;
  await unlessGivenUp(signal, mountDrive(link, { tag: driveTag(turn), mount_point: DRIVE_MOUNT }));
  await parts.record.advance("drive_mounted", {});
}

async function plugNext(parts: GuestParts, signal: AbortSignal): Promise<void> {
  const { machine, plan, record } = parts;
  const { turn, ports } = record.now.drive;
  if (turn + 1 >= ports) throw new NoPortError(`all ${ports} ports for the drive are used up`);
  // Leftovers of the group, or a process that an earlier daemon did not get to plug.
  if (parts.share) await endProcess(parts.share);
  await serveDrive(parts);
  const { share } = parts;
  if (!share || !machine) throw new Error("there is no drive to plug");
  try {
    signal.throwIfAborted();
    await faultPoint("virtiofsd.renewed");
    const recorded = await record.advance("drive_replaced", { virtiofsd: share });
    await unlessGivenUp(signal, plugDrive(machine, plan.paths, recorded));
  } catch (error) {
    await endProcess(share);
    throw new Error(`the drive was not plugged: ${describeError(error)}`, { cause: error });
  }
}
