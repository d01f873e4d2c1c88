/** Root from an image: fetched, unpacked in a guest, and continued from the cached result of an earlier equal build. */
import { copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { IMAGE_DEFAULTS_FILE, type ImageDefaults } from "../../../../shared/agent-protocol/messages.ts";
import { BUSYBOX, RUNTIME } from "../../../../shared/agent-protocol/runtime.ts";
import { newId } from "../../../../shared/ids.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { convertRoot } from "../../../host/images/overlay.ts";
import { crossedDirectory } from "../../../host/isolation/directories.ts";
import { runWithProgress } from "../../../host/process.ts";
import { type BuildDeps, hardwareFor } from "../build-deps.ts";
import { type BaseImage, planDockerfile } from "../dockerfile/plan.ts";
import { stepsOf } from "../dockerfile/steps.ts";
import { FILE_NAMES } from "../manifest.ts";
import { OF_IMAGE, type Recipe } from "../recipe.ts";
import { contentsOf, type Keeping, once, type Step } from "../recipe-steps.ts";
import { type RootCache, rootKey } from "../root-cache.ts";
import { type Root, type RootStep, stepsIn } from "../root-step.ts";
import { openFetchNetwork } from "./network.ts";
import { type PullDeps, type PulledImage, pullImage } from "./pull.ts";
import { registryOf } from "./reference.ts";
import { type Unpacking, unpackImage } from "./unpack.ts";

const MIB = 1024 ** 2;

export async function rootOfImage(step: RootStep): Promise<Root> {
  const { deps, recipe, directory, scratch, own, dockerfile, cache, anew, onProgress, onStage } = step;
  const puller = newId("sbx");
  const root = join(directory, FILE_NAMES.root);
  let preparing: ReturnType<typeof prepare> | undefined;
  const prepared = () => (preparing ??= prepare(step));
  const keyOf = async (manifest_digest: string) => rootKey(manifest_digest, (await prepared()).about);
  try {
    onStage("pulling");
    onProgress(`fetching ${referenceOf(step)}`);
    // With an empty cache, the key need not be known before the fetch.
    const hasNone = anew || (await cache.isEmpty());
    const known = async (digest: string) => (await cache.find(await keyOf(digest)))?.image ?? null;
    let image = await fetchImage(step, puller, async (digest) => (hasNone ? null : await known(digest)));
    onStage("building");
    const { defaults, steps } = plannedOf(step, image);
    const contents = await contentsOf(steps);
    const keys = [await keyOf(image.manifest_digest)];
    for (const content of contents) keys.push(rootKey(keys.at(-1) ?? "", { content, secrets: step.secrets }));
    const egress = recipe.egress_allowlist ?? [];
    const kept = anew ? null : await takeLongest(cache, keys, root, egress);
    if (kept === null) {
      // The cached root may have been removed in the meantime.
      if (image.layout === null) image = await fetchImage(step, puller, async () => null);
      const file = join(scratch, IMAGE_DEFAULTS_FILE);
      await writeFile(file, JSON.stringify(dockerfile === null ? defaults : image.defaults));
      const beside = { ...own, agent: deps.programs.agent, [IMAGE_DEFAULTS_FILE]: file };
      const { directory: pull } = deps.paths.trial(puller);
      const { runtime } = await prepared();
      await unpack(step, { layout: image.layout ?? "", runtime, scratch: pull, beside }, root);
    } else
      onProgress(
        kept === 0 ? "the image was unpacked by an earlier build" : `steps 1 to ${kept}: done by an earlier build`,
      );
    const { layout: _, index_digest, ...facts } = image;
    const keeping: Keeping = {
      contents,
      hasRoom: (bytes) => cache.hasRoom(bytes),
      // A root that was only unpacked had no network access.
      keep: (made, after) =>
        cache.keep(keys[after] ?? "", made, { image: facts, egress_allowlist: after === 0 ? [] : egress }),
    };
    // A root that cannot be cached is made again by the next build.
    if (kept === null) await keeping.keep(root, 0).catch(() => onProgress("the result is not cached for later builds"));
    const { manifest_digest, config_digest } = image;
    return {
      virtualSize: recipe.disk_mib * MIB,
      source: { ref: referenceOf(step), index_digest, manifest_digest, config_digest },
      ...{ steps, done: kept ?? 0, keeping },
    };
  } finally {
    await rm(deps.paths.trial(puller).directory, { recursive: true, force: true });
  }
}

const referenceOf = ({ recipe, dockerfile }: RootStep): string => recipe.from ?? dockerfile?.file.from ?? "";

/** Fetches into the directory of a trial, which the caller removes. An organization's image is fetched through a separate network. */
async function fetchImage(step: RootStep, puller: string, known: PullDeps["known"]): Promise<PulledImage> {
  const { deps, owner, onProgress } = step;
  const { directory, runtime } = deps.paths.trial(puller);
  const reference = referenceOf(step);
  await rm(directory, { recursive: true, force: true });
  crossedDirectory(dirname(directory));
  const users = deps.host().isolation.usersOf(puller);
  // Without its supplementary groups: the fetch of an image needs no access to KVM.
  const user = users && { uid: users.qemu.uid, groups: [] };
  await using network =
    owner === undefined ? null : await openFetchNetwork(runtime, registryOf(reference), deps.openTunnels);
  const { skopeo } = deps.programs;
  const pulling = { skopeo, user, auth: deps.registryAuth, network, requireSpace: deps.requireSpace, known };
  return await pullImage(pulling, reference, directory, onProgress);
}

/** The steps that run on the image, and the defaults of later commands. */
export function plannedOf(
  { recipe, dockerfile }: Pick<RootStep, "recipe" | "dockerfile">,
  image: BaseImage,
): { defaults: ImageDefaults; steps: Step[] } {
  if (dockerfile === null) return { defaults: defaultsFor(recipe, image.defaults), steps: stepsIn(recipe) };
  const planned = planDockerfile(dockerfile.file, image);
  const defaults = defaultsFor(recipe, planned.defaults);
  return {
    defaults,
    steps: [...stepsOf(planned.steps, dockerfile.beside), defaultsStep(defaults), ...stepsIn(recipe)],
  };
}

/** Makes the common files of every root, and returns all inputs of an unpacked image besides the image itself. */
async function prepare({ deps, recipe, directory, builder, dockerfile, own, onProgress }: RootStep) {
  onProgress("installing the runtime");
  const [runtime = ""] = await makeRuntime(deps, builder.runtime);
  for (const role of ["kernel", "initramfs"] as const) {
    await copyFile(join(runtime, FILE_NAMES[role]), join(directory, FILE_NAMES[role]));
  }
  const texts = Object.entries(own).map(async ([name, path]) => [name, await readFile(path, "utf8")]);
  const hashOf = async (file: string) =>
    new Bun.CryptoHasher("sha256").update(await Bun.file(file).bytes()).digest("hex");
  const about = {
    agent: await hashOf(deps.programs.agent),
    runtime: basename(runtime),
    // A rebuilt template may have another kernel, with other modules.
    kernel: await hashOf(join(directory, FILE_NAMES.kernel)),
    disk_mib: recipe.disk_mib,
    own: await Promise.all(texts),
    // With a Dockerfile, the last step writes the defaults of commands.
    defaults: dockerfile === null ? recipe.start === OF_IMAGE : null,
  };
  return { runtime, about };
}

/** Takes the cached root with the most steps applied, and returns its index in `keys`; null if no root is cached. */
async function takeLongest(
  cache: RootCache,
  keys: readonly string[],
  root: string,
  egress: readonly string[],
): Promise<number | null> {
  for (const [after, key] of [...keys.entries()].reverse()) {
    if ((await cache.take(key, root, egress)) !== null) return after;
  }
  return null;
}

async function unpack(
  { deps, recipe, directory, onProgress }: RootStep,
  options: Pick<Unpacking, "layout" | "runtime" | "scratch" | "beside">,
  root: string,
): Promise<void> {
  const { qemu_img } = deps.programs;
  const { disk_mib } = recipe;
  const disk = join(directory, "unpacked.qcow2");
  const trial = { placeOf: deps.paths.trial, host: deps.host(), qemu_img };
  await unpackImage(
    trial,
    await hardwareFor(deps, recipe, directory),
    { ...options, directory, disk, disk_mib },
    onProgress,
  );
  const user = deps.host().isolation.readerOf(newId("sbx"));
  await convertRoot(qemu_img, { path: disk, format: "qcow2", over: null, size_bytes: disk_mib * MIB, user }, root);
  await rm(disk);
}

/** Writes the final defaults of commands; each step had the defaults up to its own position. */
function defaultsStep(defaults: ImageDefaults): Step {
  const put = once(new TextEncoder().encode(JSON.stringify(defaults)));
  const place = `${RUNTIME}/${IMAGE_DEFAULTS_FILE}`;
  return { title: "writing the defaults of commands", put, argv: [BUSYBOX, "sh", "-c", 'cat >"$0"', place] };
}

/** Includes the image's entry point if the recipe starts it. */
function defaultsFor({ start }: Recipe, defaults: ImageDefaults): ImageDefaults {
  if (start !== OF_IMAGE) return { ...defaults, start: null };
  if (defaults.start !== null) return defaults;
  throw new ServiceError("image_invalid", {
    detail: "The image has no entry point and no command to start.",
    hint: "Set the recipe's start to the command to run.",
  });
}

/** Makes the common files of every root, which most builds find in the cache; the first line is their path. */
async function makeRuntime({ paths, mirror }: BuildDeps, program: string): Promise<string[]> {
  const argv = [program, "--cache", paths.template_cache, ...(mirror === "" ? [] : ["--mirror", mirror])];
  const lines: string[] = [];
  await runWithProgress(argv, (line) => lines.push(line));
  return lines;
}
