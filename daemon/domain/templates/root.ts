/** Owns what a guest of a template boots: kernel, initramfs and a root disk, of Debian's packages or of an image. */
import { copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { IMAGE_DEFAULTS_FILE, type ImageDefaults } from "../../../shared/agent-protocol/messages.ts";
import { BUSYBOX, RUNTIME } from "../../../shared/agent-protocol/runtime.ts";
import type { TemplateSource } from "../../../shared/api/templates.ts";
import { newId } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import { convertRoot } from "../../host/images/overlay.ts";
import { crossedDirectory } from "../../host/isolation/directories.ts";
import { runWithProgress } from "../../host/process.ts";
import { type BuildDeps, type BuildStage, hardwareFor } from "./build-deps.ts";
import type { Beside } from "./dockerfile/context.ts";
import { planDockerfile } from "./dockerfile/plan.ts";
import type { Dockerfile } from "./dockerfile/read.ts";
import { stepsOf } from "./dockerfile/steps.ts";
import { pullImage } from "./image/pull.ts";
import { unpackImage } from "./image/unpack.ts";
import { FILE_NAMES } from "./manifest.ts";
import { OF_IMAGE, type Recipe, readyTimeoutSeconds, unpackBuilder } from "./recipe.ts";
import { once, type Step, stepOf } from "./recipe-steps.ts";

/** With what its COPYs take from; null: nothing is beside it, or it has none. */
export interface GivenDockerfile {
  file: Dockerfile;
  beside: Beside | null;
}

export interface Root {
  /** What the disk may grow to. */
  virtualSize: number;
  /** Of what image it is; null for packages. */
  source: TemplateSource | null;
  /** What is run in it before it is booted. */
  steps: Step[];
}

/** Makes what a guest boots: kernel, initramfs and root disk. */
export async function makeRoot(
  deps: BuildDeps,
  recipe: Recipe,
  directory: string,
  dockerfile: GivenDockerfile | null,
  onProgress: (line: string) => void,
  onStage: (stage: BuildStage) => void,
): Promise<Root> {
  const scratch = join(directory, ".builder");
  const builder = await unpackBuilder(scratch);
  await mkdir(deps.paths.template_cache, { recursive: true, mode: 0o700 });
  const own = await writeOwn(recipe, scratch);
  const make = recipe.packages === undefined ? rootOfImage : rootOfPackages;
  const root = await make({ deps, recipe, directory, scratch, builder, own, dockerfile, onProgress, onStage });
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
  dockerfile: GivenDockerfile | null;
  onProgress(line: string): void;
  onStage(stage: BuildStage): void;
}

async function rootOfPackages({ deps, recipe, directory, builder, own, onProgress, onStage }: RootStep): Promise<Root> {
  const { suite = "", packages = [], disk_mib } = recipe;
  onStage("building");
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
  const { deps, recipe, directory, scratch, builder, own, dockerfile, onProgress, onStage } = step;
  const { from: ref = dockerfile?.file.from ?? "", disk_mib } = recipe;
  const { isolation } = deps.host();
  const { skopeo, qemu_img } = deps.programs;
  const puller = newId("sbx");
  const pull = deps.paths.trial(puller).directory;
  try {
    crossedDirectory(dirname(pull));
    onStage("pulling");
    onProgress(`fetching ${ref}`);
    const users = isolation.usersOf(puller);
    // None of its further groups: what fetches an image has no business with KVM.
    const user = users && { uid: users.qemu.uid, groups: [] };
    const pulling = { skopeo, user, auth: deps.registryAuth, requireSpace: deps.requireSpace };
    const image = await pullImage(pulling, ref, pull, onProgress);
    onStage("building");
    const planned = dockerfile && planDockerfile(dockerfile.file, image);
    const wanted = defaultsFor(recipe, planned?.defaults ?? image.defaults);
    const steps = planned === null ? [] : stepsOf(planned.steps, dockerfile?.beside ?? null);
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
      { paths: deps.paths, host: deps.host(), qemu_img },
      await hardwareFor(deps, recipe, directory),
      {
        ...{ layout: image.layout, runtime, scratch: pull, directory, disk, disk_mib },
        beside: { ...own, agent: deps.programs.agent, [IMAGE_DEFAULTS_FILE]: defaults },
      },
      onProgress,
    );
    const root = { path: disk, format: "qcow2", over: null } as const;
    const virtualSize = await convertRoot(qemu_img, root, join(directory, FILE_NAMES.root));
    if (virtualSize !== disk_mib * 1024 ** 2) throw new Error(`the unpacked disk has ${virtualSize} bytes`);
    await rm(disk);
    const { index_digest, manifest_digest, config_digest } = image;
    return { virtualSize, source: { ref, index_digest, manifest_digest, config_digest }, steps };
  } finally {
    await rm(pull, { recursive: true, force: true });
  }
}

/** What commands start from once the steps have run, each of which had what was said until then. */
function defaultsStep(defaults: ImageDefaults): Step {
  const put = once(new TextEncoder().encode(JSON.stringify(defaults)));
  const place = `${RUNTIME}/${IMAGE_DEFAULTS_FILE}`;
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
