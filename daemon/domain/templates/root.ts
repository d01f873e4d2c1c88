/** Owns what a guest of a template boots: kernel, initramfs and a root disk, of Debian's packages or of an image. */
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { IMAGE_DEFAULTS_FILE, type ImageDefaults } from "../../../shared/agent-protocol/messages.ts";
import { BUSYBOX, RUNTIME } from "../../../shared/agent-protocol/runtime.ts";
import type { TemplateSource } from "../../../shared/api/templates.ts";
import { newId, type OrgId } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import { convertRoot } from "../../host/images/overlay.ts";
import { crossedDirectory } from "../../host/isolation/directories.ts";
import { runWithProgress } from "../../host/process.ts";
import { type BuildDeps, type BuildStage, hardwareFor } from "./build-deps.ts";
import type { Beside } from "./dockerfile/context.ts";
import { planDockerfile } from "./dockerfile/plan.ts";
import type { Dockerfile } from "./dockerfile/read.ts";
import { stepsOf } from "./dockerfile/steps.ts";
import { openFetchNetwork } from "./image/network.ts";
import { type PullDeps, pullImage } from "./image/pull.ts";
import { registryOf } from "./image/reference.ts";
import { type Unpacking, unpackImage } from "./image/unpack.ts";
import { FILE_NAMES } from "./manifest.ts";
import { OF_IMAGE, type Recipe, readyTimeoutSeconds, unpackBuilder } from "./recipe.ts";
import { contentsOf, type Keeping, once, type Step, stepOf } from "./recipe-steps.ts";
import { type RootCache, rootKey } from "./root-cache.ts";

const MIB = 1024 ** 2;

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
  /** So many of them were run by an earlier build. */
  done: number;
  /** Where it is kept after some of them; null: where the packages of a suite are asked for, they may be newer each time. */
  keeping: Keeping | null;
  /** Of its steps. */
  contents: readonly string[];
}

export interface RootOptions {
  /** Absent: the host's. An organization's images are fetched in a network of their own. */
  owner: OrgId | undefined;
  /** Of earlier builds of its owner. */
  cache: RootCache;
  /** Whether it is made from the beginning, whatever is there. */
  anew: boolean;
  /** Names of what its steps find in /run/secrets. */
  secrets: readonly string[];
  onProgress(line: string): void;
  onStage(stage: BuildStage): void;
}

/** Makes what a guest boots: kernel, initramfs and root disk. */
export async function makeRoot(
  deps: BuildDeps,
  recipe: Recipe,
  directory: string,
  dockerfile: GivenDockerfile | null,
  options: RootOptions,
): Promise<Root> {
  const scratch = join(directory, ".builder");
  const builder = await unpackBuilder(scratch);
  await mkdir(deps.paths.template_cache, { recursive: true, mode: 0o700 });
  const own = await writeOwn(recipe, scratch);
  const make = recipe.packages === undefined ? rootOfImage : rootOfPackages;
  const root = await make({ ...options, deps, recipe, directory, scratch, builder, own, dockerfile });
  await rm(scratch, { recursive: true });
  return root;
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

interface RootStep extends RootOptions {
  deps: BuildDeps;
  recipe: Recipe;
  directory: string;
  scratch: string;
  builder: Awaited<ReturnType<typeof unpackBuilder>>;
  own: Record<string, string>;
  dockerfile: GivenDockerfile | null;
}

const stepsIn = ({ steps = [] }: Recipe): Step[] => steps.map(stepOf);

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
  const steps = stepsIn(recipe);
  return { virtualSize, source: null, steps, done: 0, keeping: null, contents: await contentsOf(steps) };
}

async function rootOfImage(step: RootStep): Promise<Root> {
  const { deps, recipe, directory, scratch, own, owner, dockerfile, cache, anew, onProgress, onStage } = step;
  const { from: ref = dockerfile?.file.from ?? "" } = recipe;
  const { isolation } = deps.host();
  const { skopeo } = deps.programs;
  const puller = newId("sbx");
  const { directory: pull, runtime } = deps.paths.trial(puller);
  const root = join(directory, FILE_NAMES.root);
  let preparing: ReturnType<typeof prepare> | undefined;
  const prepared = () => (preparing ??= prepare(step));
  const keyOf = async (manifest_digest: string) => rootKey(manifest_digest, (await prepared()).about);
  const fetch = async (known: PullDeps["known"]) => {
    await rm(pull, { recursive: true, force: true });
    crossedDirectory(dirname(pull));
    const users = isolation.usersOf(puller);
    // None of its further groups: what fetches an image has no business with KVM.
    const user = users && { uid: users.qemu.uid, groups: [] };
    await using network =
      owner === undefined ? null : await openFetchNetwork(runtime, registryOf(ref), deps.openTunnels);
    const pulling = { skopeo, user, auth: deps.registryAuth, network, requireSpace: deps.requireSpace, known };
    return await pullImage(pulling, ref, pull, onProgress);
  };
  try {
    onStage("pulling");
    onProgress(`fetching ${ref}`);
    // Where nothing is kept, what it would be called need not be found out before it is fetched.
    const hasNone = anew || (await cache.isEmpty());
    const known = async (digest: string) => (await cache.find(await keyOf(digest)))?.image ?? null;
    let image = await fetch(async (digest) => (hasNone ? null : await known(digest)));
    onStage("building");
    const planned = dockerfile && planDockerfile(dockerfile.file, image);
    const wanted = defaultsFor(recipe, planned?.defaults ?? image.defaults);
    const steps = planned === null ? [] : stepsOf(planned.steps, dockerfile?.beside ?? null);
    if (planned !== null) steps.push(defaultsStep(wanted));
    steps.push(...stepsIn(recipe));
    const contents = await contentsOf(steps);
    const keys = [await keyOf(image.manifest_digest)];
    for (const content of contents) keys.push(rootKey(keys.at(-1) ?? "", { content, secrets: step.secrets }));
    const egress = recipe.egress_allowlist ?? [];
    let done = anew ? null : await takeLongest(cache, keys, root, egress);
    const isUnpacked = done === null;
    if (done === null) {
      // What was known of it may have gone meanwhile.
      if (image.layout === null) image = await fetch(async () => null);
      const defaults = join(scratch, IMAGE_DEFAULTS_FILE);
      await writeFile(defaults, JSON.stringify(planned === null ? wanted : image.defaults));
      const beside = { ...own, agent: deps.programs.agent, [IMAGE_DEFAULTS_FILE]: defaults };
      const layout = image.layout ?? "";
      await unpack(step, { layout, runtime: (await prepared()).runtime, scratch: pull, beside }, root);
      done = 0;
    } else
      onProgress(
        done === 0 ? "an earlier build has unpacked it" : `steps 1 to ${done}: as an earlier build has left them`,
      );
    const virtualSize = recipe.disk_mib * MIB;
    const { layout: _, index_digest, ...facts } = image;
    const keeping: Keeping = {
      hasRoom: (bytes) => cache.hasRoom(bytes),
      // What was only unpacked could connect nowhere.
      keep: (made, after) =>
        cache.keep(keys[after] ?? "", made, { image: facts, egress_allowlist: after === 0 ? [] : egress }),
    };
    // What cannot be kept is made again.
    if (isUnpacked) await keeping.keep(root, 0).catch(() => onProgress("this is not kept for later builds"));
    const { manifest_digest, config_digest } = image;
    const source = { ref, index_digest, manifest_digest, config_digest };
    return { virtualSize, source, steps, done, keeping, contents };
  } finally {
    await rm(pull, { recursive: true, force: true });
  }
}

/** Makes what every root is given, and says all that an unpacked image is made of besides itself. */
async function prepare({ deps, recipe, directory, builder, dockerfile, own, onProgress }: RootStep) {
  onProgress("making the runtime");
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
    // Made again, it may have another one, and modules that go with it.
    kernel: await hashOf(join(directory, FILE_NAMES.kernel)),
    disk_mib: recipe.disk_mib,
    own: await Promise.all(texts),
    // With those of a Dockerfile, its last step writes what commands start from.
    defaults: dockerfile === null ? recipe.start === OF_IMAGE : null,
  };
  return { runtime, about };
}

/** Puts the root there that was kept after the most steps, and returns after how many; null: none is. */
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
  what: Pick<Unpacking, "layout" | "runtime" | "scratch" | "beside">,
  root: string,
): Promise<void> {
  const { qemu_img } = deps.programs;
  const { disk_mib } = recipe;
  const disk = join(directory, "unpacked.qcow2");
  const trial = { paths: deps.paths, host: deps.host(), qemu_img };
  await unpackImage(
    trial,
    await hardwareFor(deps, recipe, directory),
    { ...what, directory, disk, disk_mib },
    onProgress,
  );
  const size = await convertRoot(qemu_img, { path: disk, format: "qcow2", over: null }, root);
  if (size !== disk_mib * MIB) throw new Error(`the unpacked disk has ${size} bytes`);
  await rm(disk);
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
