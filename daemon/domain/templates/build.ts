/**
 * Owns building a template:
 *
 *   recipe → root disk → boot once → quiet agent → stop and save → overlays → manifest → self-test → publish
 *
 * Everything is made in a directory of its own; only the last rename of the link `current` makes it a template.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { copyFile, mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import {
  GENERATION,
  IMAGE_DEFAULTS_FILE,
  type ImageDefaults,
  TEMPLATE_FAILED_LINE,
  TEMPLATE_FLAG,
  TEMPLATE_READY_LINE,
} from "../../../shared/agent-protocol/messages.ts";
import type { TemplateRecord, TemplateSource } from "../../../shared/api/templates.ts";
import { newId } from "../../../shared/ids.ts";
import { VERSION } from "../../../shared/version.ts";
import { now } from "../../core/clock.ts";
import type { Paths } from "../../core/paths.ts";
import { within } from "../../core/published.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import { convertRoot, makeOverlay } from "../../host/images/overlay.ts";
import { crossedDirectory, readableTemplate } from "../../host/isolation/directories.ts";
import type { Machine } from "../../host/machine/machine.ts";
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
import { planDockerfile } from "./dockerfile/plan.ts";
import { type Dockerfile, readDockerfile } from "./dockerfile/read.ts";
import { stepsOf } from "./dockerfile/steps.ts";
import { pullImage } from "./image/pull.ts";
import { unpackImage } from "./image/unpack.ts";
import { digestOf, FILE_NAMES, type FileRole, factsOf, imageOf, MANIFEST_FORMAT, type Manifest } from "./manifest.ts";
import { invalidRecipe, OF_IMAGE, type Recipe, readRecipe, readyTimeoutSeconds, unpackBuilder } from "./recipe.ts";
import { BUSYBOX, runRecipeSteps, type ServeEgress, type Step, stepOf } from "./recipe-steps.ts";
import { CURRENT, MANIFEST_FILE, UNPUBLISHED, VERSION as VERSION_NAME } from "./registry.ts";
import { selfTest } from "./self-test.ts";
import { withTrialMachine } from "./trial-machine.ts";
import { whileBuilding } from "./trials.ts";

const BOOT_DEADLINE_MS = 180_000;

export interface BuildDeps {
  paths: Paths;
  /** What the self-test's guests start on. */
  host(): GuestHost;
  programs: { qemu: string; qemu_img: string; skopeo: string; agent: string };
  qemuVersion: string | null;
  /** What opens registries, as docker's config.json says it; for this build alone. */
  registryAuth?: string | undefined;
  /** URL of the Debian archive; empty: the one of this host's apt sources. */
  mirror: string;
  /** What a recipe's steps may reach. */
  egress: {
    /** What is wrong with a list, in sentences. */
    wrong(allowlist: readonly string[]): string[];
    serve: ServeEgress;
  };
  /** Most memory of one sandbox. */
  limits: { memory_mib: number };
  /** Finds out the acceleration with the new template's kernel. */
  probe(kernel: string): Promise<Acceleration>;
}

export interface BuildOptions {
  /** Text of the recipe; the embedded one when absent. */
  recipe?: string | undefined;
  /** For ARG of its Dockerfile, by name. */
  args?: Readonly<Record<string, string>> | undefined;
  /** What its steps find in /run/secrets, by name; kept nowhere. */
  secrets?: Readonly<Record<string, Uint8Array>> | undefined;
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
  const wrong = deps.egress.wrong(recipe.egress_allowlist ?? []);
  if (wrong.length > 0) throw invalidRecipe(wrong);
  if (!existsSync(deps.programs.agent)) {
    throw new ServiceError("validation_failed", {
      detail: `The guest agent ${deps.programs.agent} is missing.`,
      hint: "Build it with `bun run build`, or set host.agent.",
    });
  }
  const dockerfile = recipe.dockerfile === undefined ? null : dockerfileIn(recipe.dockerfile, options.args);
  return await whileBuilding(paths, () => buildVersion(deps, templateId, recipe, dockerfile, options));
}

function dockerfileIn(path: string, args: BuildOptions["args"]): Dockerfile {
  const there = statSync(path, { throwIfNoEntry: false });
  if (!there?.isFile()) throw invalidRecipe([`dockerfile: there is no file ${path}`]);
  return readDockerfile(readFileSync(path, "utf8"), args);
}

async function buildVersion(
  deps: BuildDeps,
  templateId: string,
  recipe: Recipe,
  dockerfile: Dockerfile | null,
  options: BuildOptions,
): Promise<TemplateRecord> {
  const { paths } = deps;
  const home = paths.template(templateId);
  const version = newId("evt").slice("evt_".length).toLowerCase();
  const directory = join(home, version);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  try {
    const root = await makeRoot(deps, recipe, directory, dockerfile, options.onProgress);
    readableTemplate(directory);
    const hardware = await hardwareFor(deps, recipe, directory);
    const { virtualSize } = root;
    if (root.steps.length > 0) {
      const { host, programs, egress } = deps;
      await runRecipeSteps(
        { host: host(), paths, qemu_img: programs.qemu_img, egress: egress.serve },
        hardware,
        directory,
        virtualSize,
        { steps: root.steps, egress_allowlist: recipe.egress_allowlist ?? [], secrets: options.secrets ?? {} },
        options.onProgress,
      );
      readableTemplate(directory);
    }
    options.onProgress(`booting the template under ${hardware.acceleration} and saving it`);
    await snapshot(deps, recipe, directory, hardware, virtualSize);
    await makeOverlays(deps, directory, virtualSize);
    const manifest = await writeManifest(deps, recipe, directory, hardware, root.source);
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

interface Root {
  /** What the disk may grow to. */
  virtualSize: number;
  /** Of what image it is; null for packages. */
  source: TemplateSource | null;
  /** What is run in it before it is booted. */
  steps: Step[];
}

/** Makes what a guest boots: kernel, initramfs and root disk. */
async function makeRoot(
  deps: BuildDeps,
  recipe: Recipe,
  directory: string,
  dockerfile: Dockerfile | null,
  onProgress: (line: string) => void,
): Promise<Root> {
  const scratch = join(directory, ".builder");
  const builder = await unpackBuilder(scratch);
  await mkdir(deps.paths.template_cache, { recursive: true, mode: 0o700 });
  const own = await writeOwn(recipe, scratch);
  const make = recipe.packages === undefined ? rootOfImage : rootOfPackages;
  const root = await make({ deps, recipe, directory, scratch, builder, own, dockerfile, onProgress });
  await rm(scratch, { recursive: true });
  return { ...root, steps: [...root.steps, ...(recipe.steps ?? []).map(stepOf)] };
}

/** The scripts of a recipe, as files that lie beside the agent, by their names there. */
async function writeOwn(recipe: Recipe, scratch: string): Promise<Record<string, string>> {
  const timeout = `${readyTimeoutSeconds(recipe)}\n`;
  const own: Record<string, string> = {};
  for (const [name, text] of [
    ["start", recipe.start === OF_IMAGE ? undefined : recipe.start],
    ["ready", recipe.ready],
    ["ready-timeout", recipe.start && timeout],
    ["restored", recipe.restored],
  ] as const) {
    if (text === undefined) continue;
    own[name] = join(scratch, name);
    await writeFile(own[name], text);
  }
  return own;
}

interface RootStep {
  deps: BuildDeps;
  recipe: Recipe;
  directory: string;
  scratch: string;
  builder: Awaited<ReturnType<typeof unpackBuilder>>;
  own: Record<string, string>;
  dockerfile: Dockerfile | null;
  onProgress(line: string): void;
}

async function rootOfPackages({ deps, recipe, directory, builder, own, onProgress }: RootStep): Promise<Root> {
  const { suite = "", packages = [], disk_mib } = recipe;
  const argv = [builder.build, "--out", directory, "--agent", deps.programs.agent, "--suite", suite];
  argv.push("--packages", packages.join(" "), "--disk-mib", String(disk_mib), "--cache", deps.paths.template_cache);
  if (deps.mirror !== "") argv.push("--mirror", deps.mirror);
  for (const file of Object.values(own)) argv.push("--own", file);
  await runWithProgress(argv, onProgress);
  const raw = join(directory, "root.ext4");
  const root = { path: raw, format: "raw" } as const;
  const virtualSize = await convertRoot(deps.programs.qemu_img, root, join(directory, FILE_NAMES.root));
  await rm(raw);
  return { virtualSize, source: null, steps: [] };
}

async function rootOfImage(step: RootStep): Promise<Root> {
  const { deps, recipe, directory, scratch, builder, own, dockerfile, onProgress } = step;
  const { from: ref = dockerfile?.from ?? "", disk_mib } = recipe;
  const { isolation } = deps.host();
  const { skopeo, qemu, qemu_img } = deps.programs;
  const puller = newId("sbx");
  const pull = deps.paths.trial(puller).directory;
  try {
    crossedDirectory(dirname(pull));
    onProgress(`fetching ${ref}`);
    const users = isolation.usersOf(puller);
    // None of its further groups: what fetches an image has no business with KVM.
    const user = users && { uid: users.qemu.uid, groups: [] };
    const image = await pullImage({ skopeo, user, auth: deps.registryAuth }, ref, pull, onProgress);
    const planned = dockerfile && planDockerfile(dockerfile, image);
    const wanted = defaultsFor(recipe, planned?.defaults ?? image.defaults);
    const steps = planned === null ? [] : stepsOf(planned.steps, recipe.context ?? "");
    if (planned !== null) steps.push(defaultsStep(wanted));
    onProgress("making the runtime");
    const [runtime = ""] = await makeRuntime(deps, builder.runtime);
    for (const role of ["kernel", "initramfs"] as const) {
      await copyFile(join(runtime, FILE_NAMES[role]), join(directory, FILE_NAMES[role]));
    }
    const defaults = join(scratch, IMAGE_DEFAULTS_FILE);
    await writeFile(defaults, JSON.stringify(planned === null ? wanted : image.defaults));
    const disk = join(directory, "unpacked.qcow2");
    await unpackImage(
      { paths: deps.paths, isolation, qemu, qemu_img },
      await hardwareFor(deps, recipe, directory),
      {
        ...{ layout: image.layout, runtime, scratch: pull, directory, disk, disk_mib },
        beside: { ...own, agent: deps.programs.agent, [IMAGE_DEFAULTS_FILE]: defaults },
      },
      onProgress,
    );
    const root = { path: disk, format: "qcow2", over: null } as const;
    const virtualSize = await convertRoot(qemu_img, root, join(directory, FILE_NAMES.root));
    await rm(disk);
    const { index_digest, manifest_digest, config_digest } = image;
    return { virtualSize, source: { ref, index_digest, manifest_digest, config_digest }, steps };
  } finally {
    await rm(pull, { recursive: true, force: true });
  }
}

/** What commands start from once the steps have run, each of which had what was said until then. */
function defaultsStep(defaults: ImageDefaults): Step {
  const put = (async function* () {
    yield new TextEncoder().encode(JSON.stringify(defaults));
  })();
  const place = `/usr/lib/roomd/${IMAGE_DEFAULTS_FILE}`;
  return { title: "what commands start from", put, argv: [BUSYBOX, "sh", "-c", 'cat >"$0"', place] };
}

/** Its entry point is among them where the recipe wants it running. */
function defaultsFor({ start }: Recipe, defaults: ImageDefaults): ImageDefaults {
  if (start !== OF_IMAGE) return { ...defaults, start: null };
  if (defaults.start !== null) return defaults;
  throw new ServiceError("image_invalid", {
    detail: "The image has no entry point and no command that could be started.",
    hint: "Say in the recipe's start what is to run.",
  });
}

/** What every root is given, which most builds find made; where it lies is the first line. */
async function makeRuntime({ paths, mirror }: BuildDeps, program: string): Promise<string[]> {
  const argv = [program, "--cache", paths.template_cache, ...(mirror === "" ? [] : ["--mirror", mirror])];
  const lines: string[] = [];
  await runWithProgress(argv, (line) => lines.push(line));
  return lines;
}

/** What the template is saved on, with the kernel in `directory`. */
async function hardwareFor(
  { limits, qemuVersion, probe }: BuildDeps,
  { min_memory_mib }: Recipe,
  directory: string,
): Promise<Hardware> {
  const acceleration = await probe(join(directory, FILE_NAMES.kernel));
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
  // QEMU may write into files that it finds, and make none.
  await writeFile(memory, "");
  const spec = {
    hardware,
    kernel: join(directory, FILE_NAMES.kernel),
    initramfs: join(directory, FILE_NAMES.initramfs),
    append: `${kernelAppend(hardware.acceleration)} ${TEMPLATE_FLAG}`,
    disk,
    writes: [memory],
  };
  const { paths, programs } = deps;
  await withTrialMachine({ paths, isolation: deps.host().isolation, qemu: programs.qemu }, spec, async (machine) => {
    await readyLine(machine, BOOT_DEADLINE_MS + (recipe.start ? readyTimeoutSeconds(recipe) * 1000 : 0));
    await machine.save(memory);
  });
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
  source: TemplateSource | null,
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
      ...(source !== null && { source }),
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
  const link = join(home, `${UNPUBLISHED}${version}`);
  await symlink(version, link);
  await rename(link, join(home, CURRENT));
  const versions = (await readdir(home)).filter((name) => VERSION_NAME.test(name)).sort();
  for (const old of versions.slice(0, -2)) await rm(join(home, old), { recursive: true, force: true });
}

/** Removes a template with all its versions. Sandboxes that run on it go on. Throws template_not_found. */
export async function removeTemplate(paths: Paths, templateId: string): Promise<void> {
  const home = paths.template(templateId);
  if (!existsSync(home))
    throw new ServiceError("template_not_found", { detail: `There is no template ${templateId}.` });
  await rm(home, { recursive: true, force: true });
}
