/**
 * Owns saving a running guest to disk, memory and devices, at one instant.
 *
 *   hold its connection → take its vsock device away → stop and save → written down as whole
 *
 * What was saved belongs to the disk as it is then, and a guest that goes on changes that: where something fails nothing is written
 * down, and it goes on; once it is written down it never does.
 */
import { writeFile } from "node:fs/promises";
import { describeError } from "../../core/service-error.ts";
import { ownFile } from "../isolation/directories.ts";
import type { Machine } from "../machine/machine.ts";
import { processorOf } from "../processor.ts";
import type { SavedMachine } from "./plan.ts";
import { renewVsock } from "./renew-vsock.ts";
import { whyUnsavable } from "./savable.ts";
import { forgetSaved, keepSaved } from "./saved.ts";
import type { GuestParts } from "./steps.ts";

/** A guest that is too busy to answer by then is not saved. */
const HOLD_DEADLINE_MS = 10_000;
/** As long as a running agent may be silent. */
const AGENT_DEADLINE_MS = 30_000;

/** Why this guest cannot be saved at all, whenever it is tried. */
export class UnsavableError extends Error {
  override name = "UnsavableError";
}

/** It was not saved, and does not go on. */
export class StrandedError extends Error {
  override name = "StrandedError";
}

/**
 * Resolves once the guest stands still and is whole on disk: it must not go on, and is to be ended. Throws when it goes on as before;
 * StrandedError when it does not. Nothing of its parts may be replaced meanwhile.
 */
export async function saveGuest(parts: GuestParts, signal: AbortSignal): Promise<void> {
  const { plan, host, connection, share } = parts;
  const machineFacts = requireSavable(parts);
  const machine = machineOf(parts);
  await connection.hold(HOLD_DEADLINE_MS);
  try {
    await parts.endpoint?.close();
    await machine.unplugVsock();
    // QEMU may write into files that it finds, and make none.
    await writeFile(plan.paths.memory, "", { mode: 0o600 });
    await ownFile(plan.paths.memory, host.isolation.usersOf(plan.sandbox_id)?.qemu.uid ?? 0);
    const save = () => machine.save(plan.paths.memory);
    // What the drive's process knows is saved too.
    await (share ? host.restraints.answering(share, save) : save());
    await keepSaved(plan.paths, {
      qemu_version: await machine.version(),
      processor: processorOf(),
      machine: machineFacts,
      known: connection.acquaintance,
    });
  } catch (error) {
    await goOn(parts, machine, signal);
    throw error;
  }
}

async function goOn(parts: GuestParts, machine: Machine, signal: AbortSignal): Promise<void> {
  const { plan, host, share, connection } = parts;
  try {
    await forgetSaved(plan.paths);
    const resume = () => machine.resume();
    await (share ? host.restraints.answering(share, resume) : resume());
    await renewVsock(parts, signal);
    await connection.link(AGENT_DEADLINE_MS, signal);
  } catch (error) {
    throw new StrandedError(describeError(error), { cause: error });
  }
}

function machineOf({ machine }: GuestParts): Machine {
  if (!machine) throw new Error("there is no machine to save");
  return machine;
}

/** What it has to be restored on. Throws UnsavableError. */
function requireSavable({ record, share }: GuestParts): SavedMachine {
  const why = whyUnsavable(record.now, share !== undefined);
  const { machine } = record.now;
  if (why !== null || !machine) throw new UnsavableError(why ?? "");
  return machine;
}
