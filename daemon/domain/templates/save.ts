/** Saving of a template's machine: one boot of its root, until its agent is idle, with the requested number of processors. */
import { writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { TEMPLATE_FAILED_LINE, TEMPLATE_FLAG, TEMPLATE_READY_LINE } from "../../../shared/agent-protocol/messages.ts";
import { within } from "../../core/concurrency/published.ts";
import type { Paths } from "../../core/config/paths.ts";
import { ServiceError } from "../../core/service-error.ts";
import { makeOverlay } from "../../host/images/overlay.ts";
import type { Machine } from "../../host/machine/machine.ts";
import type { Hardware } from "../../host/machine/spec.ts";
import { type BuildMachineDeps, withBuildMachine } from "./build-machine.ts";
import { FILE_NAMES, type FileRole } from "./manifest.ts";

/** On a busy host with emulation, or in a nested virtual machine, the boot takes minutes. */
const BOOT_DEADLINE_MS = 600_000;

export interface SaveDeps extends BuildMachineDeps {
  qemu_img: string;
}

export interface Saving {
  hardware: Hardware;
  /** Kernel command line of a sandbox. */
  append: string;
  /** Timeout for the recipe's start. */
  start_ms: number;
  /** Of its disk, in bytes. */
  virtualSize: number;
  vcpus: number;
}

/**
 * Boots the template's version in `directory` once, without vsock and drive, and saves it when its agent is idle: disk and memory, to
 * `into`, which also contains its root. `signal` aborts it. Throws build_failed if a program of its recipe failed.
 */
export async function saveMachine(
  { qemu_img, ...deps }: SaveDeps,
  directory: string,
  into: string,
  { hardware, append, start_ms, virtualSize, vcpus }: Saving,
  signal?: AbortSignal,
): Promise<void> {
  const disk = join(into, FILE_NAMES.disk);
  await makeOverlay(qemu_img, disk, FILE_NAMES.root, virtualSize);
  const memory = join(into, FILE_NAMES.memory);
  // QEMU may write to existing files, but not create any.
  await writeFile(memory, "");
  const spec = {
    hardware,
    vcpu_count: vcpus,
    kernel: join(directory, FILE_NAMES.kernel),
    initramfs: join(directory, FILE_NAMES.initramfs),
    append: `${append} ${TEMPLATE_FLAG}`,
    disk,
    writes: [memory],
  };
  await withBuildMachine(deps, spec, async (machine) => {
    const giveUp = () => void machine.end().catch(() => {});
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      signal?.throwIfAborted();
      await readyLine(machine, BOOT_DEADLINE_MS + start_ms);
      await machine.save(memory);
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  });
}

/** Makes an empty overlay in `directory` over another file there, for sandboxes to copy. */
export async function makeEmpty(
  { paths, qemu_img }: { paths: Paths; qemu_img: string },
  directory: string,
  [empty, below]: readonly [empty: FileRole, below: FileRole],
  virtualSize: number,
): Promise<void> {
  // Backing file of the disk, relative to the directory of a sandbox's copy of it; each copy sets its own path (host/images/base.ts).
  const backing = relative(paths.sandbox("any").directory, join(directory, FILE_NAMES[below]));
  await makeOverlay(qemu_img, join(directory, FILE_NAMES[empty]), backing, virtualSize);
}

/** Resolves when the guest is idle. Throws build_failed with the output of the recipe's programs if one of them failed. */
async function readyLine(machine: Machine, deadlineMs: number): Promise<void> {
  const ready = Promise.withResolvers<void>();
  let printed = "";
  machine.onConsole((bytes) => {
    printed = (printed + new TextDecoder().decode(bytes).replaceAll("\r", "")).slice(-8192);
    if (printed.includes(TEMPLATE_READY_LINE)) ready.resolve();
    const failure = printed.split(TEMPLATE_FAILED_LINE).at(1);
    if (failure?.includes("\n\n")) ready.reject(failedStart(failure));
  });
  machine.process.exited.then((how) => ready.reject(new Error(`QEMU has ended: ${how}`)));
  await machine.resume();
  try {
    await within(ready.promise, deadlineMs, "the template's boot");
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new Error(`the template did not boot; its console ends with:\n${printed.slice(-2000)}`, { cause: error });
  }
}

/** `said` begins with the agent's message, a line, and the earlier output of the programs. */
function failedStart(report: string): ServiceError {
  const [why = "", ...lines] = report.split("\n\n", 1).join("").trim().split("\n");
  return new ServiceError("build_failed", {
    detail: `The template was not saved: ${why}.`,
    details: { step: "start", last_lines: lines },
    hint: "See the last lines of the recipe's start and ready.",
  });
}
