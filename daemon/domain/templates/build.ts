/**
 * Owns building a template:
 *
 *   recipe → root image → boot once → quiet agent → stop and save → overlays → manifest → self-test → publish
 *
 * Everything is made in a directory of its own; only the last rename of the link `current` makes it a template.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import {
  GENERATION,
  TEMPLATE_FAILED_LINE,
  TEMPLATE_FLAG,
  TEMPLATE_READY_LINE,
} from "../../../shared/agent-protocol/messages.ts";
import type { TemplateRecord } from "../../../shared/api/templates.ts";
import { newId } from "../../../shared/ids.ts";
import { VERSION } from "../../../shared/version.ts";
import { now } from "../../core/clock.ts";
import type { Paths } from "../../core/paths.ts";
import { within } from "../../core/published.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import { convertRoot, makeOverlay } from "../../host/images/overlay.ts";
import { makeGuestDirectories, ownFile, readableTemplate } from "../../host/isolation/directories.ts";
import { type Machine, startMachine } from "../../host/machine/machine.ts";
import {
  type Acceleration,
  cpuModelFor,
  DRIVE_PORTS,
  type Hardware,
  kernelAppend,
  MEMORY_GRAIN_MIB,
  machineTypeFor,
} from "../../host/machine/spec.ts";
import { runWithProgress } from "../../host/process.ts";
import { processorOf } from "../../host/processor.ts";
import { digestOf, FILE_NAMES, type FileRole, factsOf, imageOf, MANIFEST_FORMAT, type Manifest } from "./manifest.ts";
import { type Recipe, readRecipe, readyTimeoutSeconds, unpackBuilder } from "./recipe.ts";
import { CURRENT, MANIFEST_FILE } from "./registry.ts";
import { selfTest } from "./self-test.ts";
import { whileBuilding } from "./trials.ts";

const BOOT_DEADLINE_MS = 180_000;

export interface BuildDeps {
  paths: Paths;
  /** What the self-test's guests start on. */
  host(): GuestHost;
  programs: { qemu: string; qemu_img: string; agent: string };
  qemuVersion: string | null;
  /** URL of the Debian archive; empty: the one of this host's apt sources. */
  mirror: string;
  /** Most memory of one sandbox. */
  limits: { memory_mib: number };
  /** Finds out the acceleration with the new template's kernel. */
  probe(kernel: string): Promise<Acceleration>;
}

export interface BuildOptions {
  /** Text of the recipe; the embedded one when absent. */
  recipe?: string | undefined;
  onProgress(line: string): void;
}

/** Builds and publishes a template; the one before stays until the new one has passed its test. */
export async function buildTemplate(
  deps: BuildDeps,
  templateId: string,
  options: BuildOptions,
): Promise<TemplateRecord> {
  const { paths } = deps;
  const recipe = readRecipe(templateId, options.recipe);
  if (!existsSync(deps.programs.agent)) {
    throw new ServiceError("validation_failed", {
      detail: `The guest agent ${deps.programs.agent} is missing.`,
      hint: "Build it with `bun run build`, or set host.agent.",
    });
  }
  return await whileBuilding(paths, () => buildVersion(deps, templateId, recipe, options));
}

async function buildVersion(
  deps: BuildDeps,
  templateId: string,
  recipe: Recipe,
  options: BuildOptions,
): Promise<TemplateRecord> {
  const { paths } = deps;
  const home = paths.template(templateId);
  const version = newId("evt").slice("evt_".length).toLowerCase();
  const directory = join(home, version);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  try {
    await buildImage(deps, recipe, directory, options.onProgress);
    readableTemplate(directory);
    const acceleration = await deps.probe(join(directory, FILE_NAMES.kernel));
    const hardware = hardwareFor(deps, acceleration, recipe);
    options.onProgress(`booting the template under ${acceleration} and saving it`);
    const virtualSize = await convertRoot(
      deps.programs.qemu_img,
      join(directory, "root.ext4"),
      join(directory, FILE_NAMES.root),
    );
    await rm(join(directory, "root.ext4"));
    await snapshot(deps, recipe, directory, hardware, virtualSize);
    await makeOverlays(deps, directory, virtualSize);
    const manifest = await writeManifest(deps, recipe, directory, hardware);
    readableTemplate(directory);
    options.onProgress("testing clones of the template");
    await selfTest(deps.host(), paths, imageOf(directory, manifest, true));
    await publish(home, version);
    options.onProgress(`template ${templateId} is ready: ${manifest.record.digest}`);
    return manifest.record;
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

async function buildImage(deps: BuildDeps, recipe: Recipe, directory: string, onProgress: (line: string) => void) {
  const scratch = join(directory, ".builder");
  const builder = await unpackBuilder(scratch);
  const cache = deps.paths.template_cache;
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const argv = [builder, "--out", directory, "--agent", deps.programs.agent, "--suite", recipe.suite];
  argv.push("--packages", recipe.packages.join(" "), "--disk-mib", String(recipe.disk_mib), "--cache", cache);
  if (deps.mirror !== "") argv.push("--mirror", deps.mirror);
  const timeout = `${readyTimeoutSeconds(recipe)}\n`;
  for (const [name, text] of [
    ["start", recipe.start],
    ["ready", recipe.ready],
    ["ready-timeout", recipe.start && timeout],
    ["restored", recipe.restored],
  ] as const) {
    if (text === undefined) continue;
    const path = join(scratch, name);
    await writeFile(path, text);
    argv.push("--own", path);
  }
  await runWithProgress(argv, onProgress);
  await rm(scratch, { recursive: true });
}

function hardwareFor(
  { limits, qemuVersion }: BuildDeps,
  acceleration: Acceleration,
  { min_memory_mib }: Recipe,
): Hardware {
  const most = Math.max(0, limits.memory_mib - min_memory_mib);
  return {
    machine_type: machineTypeFor(qemuVersion),
    cpu_model: cpuModelFor(acceleration),
    base_memory_mib: min_memory_mib,
    max_plugged_mib: Math.ceil(most / MEMORY_GRAIN_MIB) * MEMORY_GRAIN_MIB,
    acceleration,
    drive_ports: DRIVE_PORTS,
    returns_memory: true,
  };
}

/** Boots the image once, without vsock and drive, and saves it when its agent is at rest. */
async function snapshot(
  deps: BuildDeps,
  recipe: Recipe,
  directory: string,
  hardware: Hardware,
  virtualSize: number,
): Promise<void> {
  const disk = join(directory, FILE_NAMES.disk);
  await makeOverlay(deps.programs.qemu_img, disk, FILE_NAMES.root, virtualSize);
  const memory = join(directory, FILE_NAMES.memory);
  const sandboxId = newId("sbx");
  const own = deps.paths.trial(sandboxId);
  const users = deps.host().isolation.usersOf(sandboxId);
  await makeGuestDirectories(own, users);
  // QEMU may write into files that it finds, and make none.
  await writeFile(memory, "");
  for (const file of [disk, memory]) await ownFile(file, users?.qemu.uid ?? 0);
  let machine: Machine | undefined;
  try {
    machine = await startMachine(
      deps.programs.qemu,
      {
        name: "template",
        uuid: crypto.randomUUID(),
        hardware,
        vcpu_count: 1,
        kernel: join(directory, FILE_NAMES.kernel),
        initramfs: join(directory, FILE_NAMES.initramfs),
        append: `${kernelAppend(hardware.acceleration)} ${TEMPLATE_FLAG}`,
        disk,
        sockets: { qmp: own.qmp, qmp_spare: own.qmp_spare, console: own.console },
        user: users?.qemu ?? null,
        vsock_file: null,
        incoming: false,
      },
      { vmm_log: own.vmm_log, console_log: own.console_log },
      { onProcess: async () => {}, enter: null },
    );
    await readyLine(machine, BOOT_DEADLINE_MS + (recipe.start ? readyTimeoutSeconds(recipe) * 1000 : 0));
    await machine.save(memory);
  } finally {
    await machine?.end();
    for (const file of [disk, memory]) await ownFile(file, 0);
    await rm(own.runtime, { recursive: true, force: true });
    await rm(own.directory, { recursive: true, force: true });
  }
}

/** Resolves when the guest is at rest. Throws build_failed with what its recipe's own programs said, where one of them failed. */
async function readyLine(machine: Machine, deadlineMs: number): Promise<void> {
  const ready = Promise.withResolvers<void>();
  let printed = "";
  machine.onConsole((bytes) => {
    printed = (printed + new TextDecoder().decode(bytes).replaceAll("\r", "")).slice(-8192);
    if (printed.includes(TEMPLATE_READY_LINE)) ready.resolve();
    const said = printed.split(TEMPLATE_FAILED_LINE).at(1);
    if (said?.includes("\n\n")) ready.reject(failedStart(said));
  });
  machine.process.exited.then((how) => ready.reject(new Error(`QEMU has ended: ${how}`)));
  await machine.resume();
  try {
    await within(ready.promise, deadlineMs, "the template's boot");
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new Error(`the template did not come up; its console ends with:\n${printed.slice(-2000)}`, { cause: error });
  }
}

/** `said` begins with what the agent says of it, a line, and what the programs said before. */
function failedStart(said: string): ServiceError {
  const [why = "", ...lines] = said.split("\n\n", 1).join("").trim().split("\n");
  return new ServiceError("build_failed", {
    detail: `The template was not saved: ${why}.`,
    details: { step: "start", last_lines: lines },
    hint: "Look at the last lines of the recipe's start and ready, in details.last_lines.",
  });
}

async function makeOverlays(deps: BuildDeps, directory: string, virtualSize: number): Promise<void> {
  // Relative to where a sandbox's copy lies, so that the data directory may be moved as a whole.
  const from = deps.paths.sandbox("any").directory;
  const make = (overlay: FileRole, backing: FileRole) =>
    makeOverlay(
      deps.programs.qemu_img,
      join(directory, FILE_NAMES[overlay]),
      relative(from, join(directory, FILE_NAMES[backing])),
      virtualSize,
    );
  await make("snapshot_overlay", "disk");
  await make("cold_overlay", "root");
}

async function writeManifest(
  deps: BuildDeps,
  recipe: Recipe,
  directory: string,
  hardware: Hardware,
): Promise<Manifest> {
  const files = {
    kernel: await factsOf(directory, "kernel"),
    initramfs: await factsOf(directory, "initramfs"),
    root: await factsOf(directory, "root"),
    disk: await factsOf(directory, "disk"),
    memory: await factsOf(directory, "memory"),
    snapshot_overlay: await factsOf(directory, "snapshot_overlay"),
    cold_overlay: await factsOf(directory, "cold_overlay"),
  };
  const { template_id, description, min_memory_mib, default_memory_mib, tools } = recipe;
  const manifest: Manifest = {
    format: MANIFEST_FORMAT,
    record: {
      template_id,
      digest: digestOf(files),
      description,
      min_memory_mib,
      default_memory_mib,
      tools,
      created_at: now(),
    },
    agent_version: VERSION,
    agent_sha256: new Bun.CryptoHasher("sha256").update(await Bun.file(deps.programs.agent).bytes()).digest("hex"),
    generation: GENERATION,
    qemu_version: deps.qemuVersion ?? "unknown",
    processor: processorOf(),
    hardware,
    append: kernelAppend(hardware.acceleration),
    ...(recipe.start === undefined ? {} : { start_seconds: readyTimeoutSeconds(recipe) }),
    files,
  };
  await writeFile(join(directory, MANIFEST_FILE), `${JSON.stringify(manifest, null, 2)}\n`);
  return manifest;
}

/** Makes the new version the one in use; the version before it stays for the sandboxes that run on it. */
async function publish(home: string, version: string): Promise<void> {
  const link = join(home, `.${CURRENT}-${version}`);
  await symlink(version, link);
  await rename(link, join(home, CURRENT));
  const versions = (await readdir(home)).filter((name) => /^[0-9a-z]{26}$/.test(name)).sort();
  for (const old of versions.slice(0, -2)) await rm(join(home, old), { recursive: true, force: true });
}

/** Removes a template with all its versions. Sandboxes that run on it go on. Throws template_not_found. */
export async function removeTemplate(paths: Paths, templateId: string): Promise<void> {
  const home = paths.template(templateId);
  if (!existsSync(home))
    throw new ServiceError("template_not_found", { detail: `There is no template ${templateId}.` });
  await rm(home, { recursive: true, force: true });
}
