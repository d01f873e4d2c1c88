/**
 * Template builds:
 *
 *     recipe → root disk → its steps → boot once → idle agent → stop, save → overlays → manifest → self-test → publish
 *
 * Everything is made in a separate directory; only the final rename of the link `current` makes it a template.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GENERATION } from "../../../shared/agent-protocol/messages.ts";
import { MAX_DOCKERFILE_BYTES } from "../../../shared/api/template-builds.ts";
import type { TemplateRecord, TemplateSource } from "../../../shared/api/templates.ts";
import { newId, type OrgId } from "../../../shared/ids.ts";
import { VERSION } from "../../../shared/version.ts";
import { now } from "../../core/clock.ts";
import type { Paths } from "../../core/config/paths.ts";
import { ServiceError } from "../../core/service-error.ts";
import { hostOfOrg } from "../../host/guest/plan.ts";
import { crossedDirectory, readableTemplate } from "../../host/isolation/directories.ts";
import { type Hardware, kernelAppend } from "../../host/machine/spec.ts";
import { processorOf } from "../../host/processor.ts";
import { type BuildDeps, type BuildStage, hardwareFor } from "./build-deps.ts";
import { whileBuilding } from "./build-sandboxes.ts";
import { archiveBeside } from "./dockerfile/archive.ts";
import type { Beside } from "./dockerfile/context.ts";
import { directoryBeside } from "./dockerfile/directory.ts";
import { type Dockerfile, readDockerfile } from "./dockerfile/read.ts";
import { localImage } from "./image/reference.ts";
import { baseOf, homeOf, keepRecipe, onBase } from "./kept-recipe.ts";
import { digestOf, factsOf, imageOf, MANIFEST_FORMAT, type Manifest } from "./manifest.ts";
import { requireFits, requireLeft, templateMib } from "./org-disk.ts";
import { checkRecipe, invalidRecipe, type Recipe, readRecipe, readyTimeoutSeconds } from "./recipe.ts";
import { runRecipeSteps } from "./recipe-steps.ts";
import { CURRENT, keptVersions, MANIFEST_FILE, UNPUBLISHED, VERSION as VERSION_NAME } from "./registry.ts";
import { makeRoot } from "./root.ts";
import { rootCache } from "./root-cache.ts";
import type { GivenDockerfile } from "./root-step.ts";
import { makeEmpty, saveMachine } from "./save.ts";
import { selfTest } from "./self-test.ts";

export interface BuildOptions {
  /** Owner of the template; the host if absent. An organization's template contains no files of the host. */
  owner?: OrgId | undefined;
  /** Text of the recipe, or its parsed fields; the embedded recipe if absent. */
  recipe?: string | Readonly<Record<string, unknown>> | undefined;
  /** Text of a Dockerfile that replaces the recipe's root. */
  dockerfile?: string | undefined;
  /** A tar of its build context. */
  context?: Uint8Array | undefined;
  /** Values for ARG of its Dockerfile, by name. */
  args?: Readonly<Record<string, string>> | undefined;
  /** Content of /run/secrets for its steps, by name; not stored. */
  secrets?: Readonly<Record<string, Uint8Array>> | undefined;
  /** Ignores the cache of earlier builds. */
  anew?: boolean | undefined;
  onProgress(line: string): void;
  /** Called while another build runs on the host; `holder` is its process. This build is next. */
  onWait?(holder: string): void;
  onStage?(stage: BuildStage): void;
}

/** Builds and publishes a template; the previous version stays until the new one has passed its self-test. */
export async function buildTemplate(
  deps: BuildDeps,
  templateId: string,
  options: BuildOptions,
): Promise<TemplateRecord> {
  const { paths } = deps;
  const recipe =
    typeof options.recipe === "object"
      ? checkRecipe(templateId, options.recipe, options.dockerfile !== undefined)
      : readRecipe(templateId, options.recipe);
  const wrong = deps.egress.wrong(recipe.egress_allowlist ?? []);
  if (wrong.length > 0) throw invalidRecipe(wrong);
  if (!existsSync(deps.programs.agent)) {
    throw new ServiceError("validation_failed", {
      detail: `The guest agent ${deps.programs.agent} is missing.`,
      hint: "Build it with `bun run build`, or set host.agent.",
    });
  }
  const text = options.dockerfile ?? (recipe.dockerfile === undefined ? null : textIn(recipe.dockerfile));
  const file = text === null ? null : readDockerfile(text, options.args);
  const base = await baseOf(paths, file);
  if (options.owner !== undefined && base === null) requireOfRegistry(recipe, file);
  const dockerfile = file && { file, beside: await besideOf(file, recipe, options.context) };
  return await whileBuilding(
    paths,
    async () => {
      const rooted = base === null ? recipe : onBase(recipe, base);
      const record = await buildVersion(deps, templateId, rooted, dockerfile, options);
      if (options.owner === undefined) await keepRecipe(paths.template(templateId), recipe, options);
      return record;
    },
    options.onWait,
  );
}

function textIn(path: string): string {
  const there = statSync(path, { throwIfNoEntry: false });
  if (!there?.isFile()) throw invalidRecipe([`dockerfile: there is no file ${path}`]);
  if (there.size > MAX_DOCKERFILE_BYTES) throw invalidRecipe([`dockerfile: ${path} is too large for a Dockerfile`]);
  return readFileSync(path, "utf8");
}

async function besideOf(
  { instructions }: Dockerfile,
  { dockerfile, context }: Recipe,
  sent: Uint8Array | undefined,
): Promise<Beside | null> {
  if (sent !== undefined) return await archiveBeside(sent);
  if (dockerfile === undefined || !instructions.some(({ keyword }) => keyword === "COPY")) return null;
  return directoryBeside(context ?? dirname(dockerfile));
}

/** Only the operator may use images outside of a registry. Throws validation_failed. */
function requireOfRegistry({ from, dockerfile: path, context }: Recipe, dockerfile: Dockerfile | null): void {
  const reference = from ?? dockerfile?.from;
  if (reference !== undefined && localImage(reference) === null && path === undefined && context === undefined) return;
  throw invalidRecipe(["from: it is an image of a registry, docker://…"]);
}

async function buildVersion(
  given: BuildDeps,
  templateId: string,
  recipe: Recipe,
  dockerfile: GivenDockerfile | null,
  options: BuildOptions,
): Promise<TemplateRecord> {
  const { paths } = given;
  const { owner } = options;
  // Before anything is made: throws if guests cannot start on this host.
  given.host();
  const number = owner === undefined ? null : await given.numberOf(owner);
  const deps: BuildDeps = { ...given, host: () => hostOfOrg(given.host(), number) };
  // Concurrently requested builds may have used up the remaining quota.
  if (owner !== undefined) requireLeft(await templateMib(paths, owner), deps.capsOf(owner));
  const home = paths.template(templateId, owner);
  const version = newId("evt").slice("evt_".length).toLowerCase();
  const directory = join(home, version);
  const stage = options.onStage ?? (() => {});
  crossedDirectory(home);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  try {
    const secrets = options.secrets ?? {};
    const root = await makeRoot(deps, recipe, directory, dockerfile, {
      owner,
      cache: rootCache({ ...deps, most_bytes: deps.limits.cache_bytes }, owner),
      anew: options.anew ?? false,
      secrets: Object.keys(secrets).sort(),
      onProgress: options.onProgress,
      onStage: stage,
    });
    const { templateGroup } = deps.host().isolation;
    readableTemplate(directory, templateGroup);
    const hardware = await hardwareFor(deps, recipe, directory);
    const { virtualSize } = root;
    if (root.steps.length > root.done) {
      const { host, programs, egress } = deps;
      await runRecipeSteps(
        { host: host(), paths, qemu_img: programs.qemu_img, egress: egress.serve },
        hardware,
        directory,
        virtualSize,
        { ...root, egress_allowlist: recipe.egress_allowlist ?? [], secrets },
        options.onProgress,
      );
      readableTemplate(directory, templateGroup);
    }
    stage("booting");
    options.onProgress(`booting the template under ${hardware.acceleration} and saving it`);
    const start_ms = recipe.start ? readyTimeoutSeconds(recipe) * 1000 : 0;
    const saving = { hardware, append: kernelAppend(hardware.acceleration), start_ms, virtualSize, vcpus: 1 };
    const { qemu_img } = deps.programs;
    await saveMachine({ qemu_img, placeOf: paths.trial, host: deps.host() }, directory, directory, saving);
    await makeOverlays(deps, directory, virtualSize);
    const manifest = await writeManifest(deps, recipe, directory, hardware, root.source);
    // The directory is complete from here on.
    if (owner !== undefined) requireFits(await templateMib(paths, owner, { templateId, version }), deps.capsOf(owner));
    readableTemplate(directory, templateGroup);
    stage("testing");
    options.onProgress("testing clones of the template");
    await selfTest(deps.host(), paths.trial, imageOf(directory, manifest, true));
    await publish(home, version);
    options.onProgress(`template ${templateId} is ready: ${manifest.record.digest}`);
    return manifest.record;
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

async function makeOverlays(deps: BuildDeps, directory: string, virtualSize: number): Promise<void> {
  const { paths, programs } = deps;
  await makeEmpty({ paths, ...programs }, directory, ["snapshot_overlay", "disk"], virtualSize);
  await makeEmpty({ paths, ...programs }, directory, ["cold_overlay", "root"], virtualSize);
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

/** Makes the new version the current one; the previous version remains for the sandboxes that run on it. */
async function publish(home: string, version: string): Promise<void> {
  const link = join(home, `${UNPUBLISHED}${version}`);
  await symlink(version, link);
  await rename(link, join(home, CURRENT));
  const names = (await readdir(home)).filter((name) => VERSION_NAME.test(name));
  const kept = keptVersions(names, version);
  for (const old of names.filter((name) => !kept.includes(name)))
    await rm(join(home, old), { recursive: true, force: true });
}

/** Removes a template with all its versions. Sandboxes on it keep running. Throws template_not_found. */
export async function removeTemplate(paths: Paths, templateId: string, owner: OrgId | null = null): Promise<void> {
  await rm(homeOf(paths, templateId, owner), { recursive: true, force: true });
}
