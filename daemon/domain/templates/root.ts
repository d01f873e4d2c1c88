/**
 * Boot files of a template's guest: kernel, initramfs and a root disk, of Debian's packages (packaging/guest-image/build) or of an image
 * (image/root.ts).
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { convertRoot, diskBytes } from "../../host/images/overlay.ts";
import { runWithProgress } from "../../host/process.ts";
import type { BuildDeps } from "./build-deps.ts";
import type { BaseImage } from "./dockerfile/plan.ts";
import { plannedOf, rootOfImage } from "./image/root.ts";
import { FILE_NAMES } from "./manifest.ts";
import { OF_IMAGE, type Recipe, readyTimeoutSeconds, unpackBuilder } from "./recipe.ts";
import { type GivenDockerfile, type Root, type RootOptions, type RootStep, stepsIn } from "./root-step.ts";

/** Makes the boot files: kernel, initramfs and root disk. */
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

/** The scripts of a recipe, as files beside the agent, by their names there. */
async function writeOwn(recipe: Recipe, scratch: string): Promise<Record<string, string>> {
  const timeout = `${readyTimeoutSeconds(recipe)}\n`;
  const own: Record<string, string> = {};
  for (const [name, text] of [
    ["start", recipe.start === OF_IMAGE ? undefined : recipe.start],
    ["ready", recipe.ready],
    ["ready-timeout", recipe.start && timeout],
    ["before_save", recipe.before_save],
    ["restored", recipe.restored],
  ] as const) {
    if (text === undefined) continue;
    own[name] = join(scratch, name);
    await writeFile(own[name], text);
  }
  return own;
}

/** Packages have no defaults for commands. */
const NO_IMAGE: BaseImage = { defaults: { env: {}, cwd: null, user: null, start: null }, entrypoint: [] };

async function rootOfPackages(step: RootStep): Promise<Root> {
  const { deps, recipe, directory, builder, own, dockerfile, onProgress, onStage } = step;
  const { suite = "", packages = [], disk_mib } = recipe;
  // An unsupported line is refused before anything is created.
  const steps = dockerfile === null ? stepsIn(recipe) : plannedOf(step, NO_IMAGE).steps;
  onStage("building");
  const argv = [builder.build, "--out", directory, "--agent", deps.programs.agent, "--suite", suite];
  argv.push("--packages", packages.join(" "), "--disk-mib", String(disk_mib), "--cache", deps.paths.template_cache);
  if (deps.mirror !== "") argv.push("--mirror", deps.mirror);
  for (const file of Object.values(own)) argv.push("--own", file);
  await runWithProgress(argv, onProgress);
  const raw = join(directory, "root.ext4");
  const root = join(directory, FILE_NAMES.root);
  await convertRoot(deps.programs.qemu_img, { path: raw, format: "raw" }, root);
  await rm(raw);
  return { virtualSize: diskBytes(root), source: null, steps, done: 0, keeping: null };
}
