/**
 * Machine that a build, or the service, boots for itself: it has its disks, a console, and nothing else. Nothing of it remains afterwards.
 */
import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { newId } from "../../../shared/ids.ts";
import type { SandboxPaths } from "../../core/config/paths.ts";
import { founding, limitsOf } from "../../host/confine/index.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import { makeGuestDirectories, ownFile } from "../../host/isolation/directories.ts";
import { directoriesOf } from "../../host/isolation/root.ts";
import { type Machine, startMachine } from "../../host/machine/machine.ts";
import type { MachineSpec } from "../../host/machine/spec.ts";
import { boundWhile } from "./build-guest.ts";
import { FILE_NAMES } from "./manifest.ts";

export interface BuildMachineDeps {
  placeOf(sandboxId: string): SandboxPaths;
  host: GuestHost;
}

export interface BuildMachine
  extends Pick<MachineSpec, "hardware" | "kernel" | "initramfs" | "append" | "disk" | "input" | "vcpu_count"> {
  /** Writable files besides its disk: QEMU makes no files. */
  writes: readonly string[];
}

/** Boots a machine, runs `work` while it is paused before its first instruction, and ends it. */
export async function withBuildMachine<T>(
  { placeOf, host }: BuildMachineDeps,
  { writes, ...spec }: BuildMachine,
  work: (machine: Machine) => Promise<T>,
): Promise<T> {
  const sandboxId = newId("sbx");
  const own = placeOf(sandboxId);
  const users = host.isolation.usersOf(sandboxId);
  const files = [spec.disk, ...writes, ...(spec.input === undefined ? [] : [spec.input])];
  // Same limits as for a sandbox with this memory.
  const { acceleration, base_memory_mib: memory_mib } = spec.hardware;
  const limits = limitsOf({ memory_mib, vcpu_count: spec.vcpu_count, acceleration }, "serving");
  let machine: Machine | undefined;
  const stopBounding = boundWhile(own.vmm_log);
  try {
    await makeGuestDirectories(own, users);
    for (const file of files) await ownFile(file, users?.qemu.uid ?? 0);
    machine = await startMachine(
      host.programs.qemu,
      {
        ...spec,
        name: "template",
        uuid: crypto.randomUUID(),
        sockets: { qmp: own.qmp, qmp_spare: own.qmp_spare, console: own.console },
        user: users?.qemu ?? null,
        root: host.isolation.ownRoots
          ? {
              ...{ directory: own.own_root, table: own.own_mounts },
              // The backing file of the disk is in the disk's directory.
              readOnly: await directoriesOf([spec.kernel, spec.initramfs, join(dirname(spec.disk), FILE_NAMES.root)]),
              writable: [own.runtime, ...(await directoriesOf(files))],
            }
          : null,
        vsock_file: null,
        incoming: false,
      },
      { vmm_log: own.vmm_log, console_log: own.console_log },
      { onProcess: async () => {}, enter: founding(host.confinement, sandboxId, limits), rank: "serving" },
    );
    return await work(machine);
  } catch (error) {
    const output = machine === undefined ? lastWords(own.vmm_log) : "";
    throw output === "" ? error : new Error(`QEMU could not start: ${output}`, { cause: error });
  } finally {
    stopBounding();
    await machine?.end();
    await rm(own.runtime, { recursive: true, force: true });
    await rm(own.directory, { recursive: true, force: true });
    // The files may be gone, together with their directory.
    for (const file of files.filter((path) => existsSync(path))) await ownFile(file, 0);
    await host.confinement.release(sandboxId);
  }
}

function lastWords(log: string): string {
  return existsSync(log) ? readFileSync(log, "utf8").trim().slice(-1000) : "";
}
