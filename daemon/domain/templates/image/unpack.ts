/**
 * Guest that makes a root file system of an image: it sees the layers, the runtime and an empty disk, has no network and no other way to
 * the host, and is discarded. The host packs files that it wrote itself, and opens nothing of the image.
 */
import { copyFile, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { within } from "../../../core/concurrency/published.ts";
import { Lines } from "../../../core/lines.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { makeDisk } from "../../../host/images/overlay.ts";
import { readableTemplate } from "../../../host/isolation/directories.ts";
import type { Machine } from "../../../host/machine/machine.ts";
import { type Hardware, kernelAppend } from "../../../host/machine/spec.ts";
import { runProgram } from "../../../host/process.ts";
import { type BuildMachineDeps, withBuildMachine } from "../build-machine.ts";
import { readFiles } from "./layout.ts";
import { writePlainManifest } from "./zstd.ts";

/** As packaging/guest-image/build makes them. */
const FS_UUID = "726f6f6d-6400-4000-8000-726f6f740001";
/** Prefix of unpacker-init's messages. */
const SAYS = "ROOMD-UNPACK ";
const PACK_DEADLINE_MS = 30 * 60_000;
/** A host without KVM unpacks about 10 MB a second. */
const UNPACK_DEADLINE_MS = 60 * 60_000;
const MEMORY_MIB = 1024;
const MIB = 1024 ** 2;
/** Overhead of the file system: a constant, and a share of the content. */
const SPARE_MIB = 64;
const SPARE_SHARE = 1.1;

export interface Unpacking {
  /** The image's layout, which is consumed. */
  layout: string;
  /** Made by packaging/guest-image/runtime. */
  runtime: string;
  /** Additional files of the runtime, the agent among them: files of this host, by their names there. */
  beside: Readonly<Record<string, string>>;
  /** A directory for packed files. */
  scratch: string;
  /** Directory of the template, with its kernel; QEMU's user can read in it. The disk is made there, qcow2. */
  directory: string;
  disk: string;
  /** Maximum size of the disk. */
  disk_mib: number;
}

/** Throws image_invalid or image_too_large with the guest's last lines. */
export async function unpackImage(
  deps: BuildMachineDeps & { qemu_img: string },
  hardware: Hardware,
  { layout, runtime, beside, scratch, directory, disk, disk_mib }: Unpacking,
  onProgress: (line: string) => void,
): Promise<void> {
  const tree = join(scratch, "input");
  const input = join(directory, "input.ext4");
  const initramfs = join(directory, "unpacker.img");
  await copyFile(join(runtime, "unpacker.img"), initramfs);
  await mkdir(tree, { mode: 0o700 });
  await writePlainManifest(await readFiles(layout), join(tree, "zstd"));
  await rename(layout, join(tree, "layout"));
  // Hard links, since there are many files.
  await runProgram(["cp", "--archive", "--link", join(runtime, "runtime"), join(tree, "runtime")], PACK_DEADLINE_MS);
  for (const [name, file] of Object.entries(beside)) await copyFile(file, join(tree, "runtime", name));
  await writeFile(join(tree, "uuid"), `${FS_UUID}\n`);
  const [bytes = "0"] = (await runProgram(["du", "-sb", tree], PACK_DEADLINE_MS)).split("\t", 1);
  const sizeMib = Math.ceil((Number(bytes) / MIB) * SPARE_SHARE) + SPARE_MIB;
  const pack = ["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", tree, input, `${sizeMib}M`];
  await runProgram(pack, PACK_DEADLINE_MS);
  await rm(tree, { recursive: true });
  await makeDisk(deps.qemu_img, disk, disk_mib * MIB);
  const spec = {
    hardware: { ...hardware, base_memory_mib: MEMORY_MIB },
    vcpu_count: 1,
    kernel: join(directory, "vmlinuz"),
    initramfs,
    append: kernelAppend(hardware.acceleration),
    disk,
    input,
    writes: [],
  };
  readableTemplate(directory, deps.host.isolation.templateGroup);
  await withBuildMachine(deps, spec, (machine) => follow(machine, onProgress));
  for (const file of [input, initramfs]) await rm(file);
}

/** Resolves when the guest has finished. */
async function follow(machine: Machine, onProgress: (line: string) => void): Promise<void> {
  const done = Promise.withResolvers<void>();
  let finished = false;
  const output: string[] = [];
  const hear = (text: string) => {
    if (!text.startsWith(SAYS)) {
      output.push(text);
      if (output.length > 20) output.shift();
      return;
    }
    const step = text.slice(SAYS.length);
    // The last message decides: file names in an image may imitate an earlier one.
    finished = step.startsWith("finished");
    if (!finished && step !== "failed") onProgress(step);
  };
  const lines = new Lines(hear);
  machine.onConsole((bytes) => lines.push(bytes));
  // The guest powers itself off when all its writes are on the disk.
  machine.process.exited.then(() => done.resolve());
  await machine.resume();
  await within(done.promise, UNPACK_DEADLINE_MS, "unpacking the image");
  if (!finished) throw failed(output);
}

function failed(output: readonly string[]): ServiceError {
  const isFull = output.some((line) => /no space left/i.test(line));
  return new ServiceError(isFull ? "image_too_large" : "image_invalid", {
    detail: isFull ? "The image does not fit on its disk." : "The image could not be unpacked.",
    details: { step: "unpack", last_lines: output.slice(-10).map((line) => line.slice(0, 500)) },
    hint: isFull ? "Give the template a larger disk_mib." : "See the last lines.",
  });
}
