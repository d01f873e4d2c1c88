/**
 * Recipes: the content of a template, and the programs that run in it when it is saved. The shipped ones are embedded, as are the image
 * builders.
 */
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parse } from "smol-toml";
import npmArchive from "../../../dist/npm.tgz" with { type: "file" };
import debianMirror from "../../../packaging/debian-mirror" with { type: "text" };
import browserRecipe from "../../../packaging/guest-image/browser.toml" with { type: "text" };
import builder from "../../../packaging/guest-image/build" with { type: "text" };
import defaultRecipe from "../../../packaging/guest-image/default.toml" with { type: "text" };
import desktopRecipe from "../../../packaging/guest-image/desktop.toml" with { type: "text" };
import dockerRecipe from "../../../packaging/guest-image/docker.toml" with { type: "text" };
import filmRecipe from "../../../packaging/guest-image/film.toml" with { type: "text" };
import initramfsInit from "../../../packaging/guest-image/initramfs-init" with { type: "text" };
import runtimeBuilder from "../../../packaging/guest-image/runtime" with { type: "text" };
import unpackerInit from "../../../packaging/guest-image/unpacker-init" with { type: "text" };
import { fields } from "../../../shared/api/contract.ts";
import { egressEntryList } from "../../../shared/api/sandboxes.ts";
import { TEMPLATE_PATTERN } from "../../../shared/api/templates.ts";
import { ServiceError } from "../../core/service-error.ts";
import { BASE_MEMORY_MIB, MEMORY_GRAIN_MIB } from "../../host/machine/spec.ts";
import { REFERENCE_PATTERN } from "./image/reference.ts";

const MAX_SCRIPT_BYTES = 65_536;
/** Default if the recipe has none. On a host without KVM a desktop takes most of a minute. */
const READY_TIMEOUT_SECONDS = 300;
const path = Type.String({ pattern: "^/[^\\u0000-\\u001f]{0,1023}$" });
const script = Type.String({ minLength: 1, maxLength: MAX_SCRIPT_BYTES });

const recipe = fields({
  template_id: Type.String({ pattern: TEMPLATE_PATTERN }),
  description: Type.String({ maxLength: 256 }),
  /** Source of its root: packages of a Debian suite, or an image. */
  suite: Type.Optional(Type.String({ pattern: "^[a-z]{1,32}$" })),
  packages: Type.Optional(Type.Array(Type.String({ pattern: "^[a-z0-9][a-z0-9+.-]{0,127}$" }), { maxItems: 512 })),
  from: Type.Optional(Type.String({ pattern: REFERENCE_PATTERN })),
  /** Shell scripts that root runs one after another, in a separate guest, before the template is booted. */
  steps: Type.Optional(Type.Array(script, { maxItems: 128 })),
  /** Egress allowlist of the steps, in the format of a sandbox's; no network if absent. */
  egress_allowlist: Type.Optional(egressEntryList),
  /** A Dockerfile of this host that replaces `from` and precedes `steps`, and the directory that it copies from. */
  dockerfile: Type.Optional(path),
  context: Type.Optional(path),
  tools: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 128 }),
  /** Memory with which the template is saved; more is plugged. Kernels count memory in blocks of this size. */
  min_memory_mib: Type.Integer({ minimum: BASE_MEMORY_MIB, multipleOf: MEMORY_GRAIN_MIB }),
  default_memory_mib: Type.Integer({ minimum: BASE_MEMORY_MIB }),
  disk_mib: Type.Integer({ minimum: 1024, maximum: 1_048_576 }),
  /**
   * A shell script that root runs before the template is saved; programs that it leaves running are running in every sandbox. OF_IMAGE: the
   * image's entry point, as the image's user.
   */
  start: Type.Optional(script),
  /** A shell script that exits with 0 once the programs of `start` can be used. It is run each second. */
  ready: Type.Optional(script),
  ready_timeout_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600 })),
  /**
   * A shell script that root runs once the programs of `start` are idle: programs that it ends are restarted in each sandbox by the
   * remaining ones.
   */
  before_save: Type.Optional(script),
  /** A shell script that root runs in each sandbox that is restored from the snapshot, before its first command. */
  restored: Type.Optional(script),
});
export type Recipe = typeof recipe.static;

/** As `start`. */
export const OF_IMAGE = "image";

/** Unused if nothing is started. */
const OF_START = ["ready", "ready_timeout_seconds", "before_save", "restored"] as const;

/** Recipes shipped with roomd, by template. */
export const EMBEDDED: Readonly<Record<string, string>> = {
  default: defaultRecipe,
  docker: dockerRecipe,
  browser: browserRecipe,
  desktop: desktopRecipe,
  film: filmRecipe,
};

/** Timeout of `start` and `ready` together. */
export const readyTimeoutSeconds = (recipe: Recipe): number => recipe.ready_timeout_seconds ?? READY_TIMEOUT_SECONDS;

/** Parses the recipe in `text`, or the embedded one of that name. Throws with every invalid field. */
export function readRecipe(templateId: string, text: string | undefined): Recipe {
  const value: unknown = parse(sourceOf(templateId, text));
  return checkRecipe(templateId, value);
}

function sourceOf(templateId: string, text: string | undefined): string {
  const source = text ?? (Object.hasOwn(EMBEDDED, templateId) ? EMBEDDED[templateId] : undefined);
  if (source === undefined) {
    throw new ServiceError("template_not_found", {
      detail: `There is no recipe for ${templateId}; give one with --recipe FILE.`,
      details: { available: Object.keys(EMBEDDED) },
    });
  }
  return source;
}

/** `isRooted`: the root is given separately, as a Dockerfile's text. Throws with every invalid field. */
export function checkRecipe(templateId: string, value: unknown, isRooted = false): Recipe {
  if (!Value.Check(recipe, value)) {
    throw invalidRecipe([...Value.Errors(recipe, value)].map((error) => `${error.path.slice(1)}: ${error.message}`));
  }
  const isOfPackages = value.suite !== undefined && value.packages !== undefined;
  const roots = [isRooted, isOfPackages, value.from !== undefined, value.dockerfile !== undefined].filter((is) => is);
  if (roots.length !== 1) throw invalidRecipe(["it needs one of these: suite and packages; from; dockerfile"]);
  if (value.start === OF_IMAGE && isOfPackages)
    throw invalidRecipe(["start: it needs an image, from `from` or a dockerfile"]);
  if (value.context !== undefined && value.dockerfile === undefined)
    throw invalidRecipe(["context: a build context requires a dockerfile"]);
  const useless = OF_START.filter((field) => value.start === undefined && value[field] !== undefined);
  if (useless.length > 0) throw invalidRecipe(useless.map((field) => `${field}: it needs start`));
  const hasSteps = isRooted || value.steps !== undefined || value.dockerfile !== undefined;
  if (value.egress_allowlist !== undefined && !hasSteps)
    throw invalidRecipe(["egress_allowlist: it applies to steps, and there are no steps"]);
  if (value.template_id !== templateId) {
    throw new ServiceError("validation_failed", {
      detail: `The recipe is for ${value.template_id}, not for ${templateId}.`,
    });
  }
  return value;
}

/** `wrong`: the errors, as sentences without full stops. */
export function invalidRecipe(wrong: readonly string[]): ServiceError {
  return new ServiceError("validation_failed", {
    detail: `The recipe is not valid: ${wrong.slice(0, 5).join("; ")}.`,
  });
}

/** Writes the image builders into a directory, in the layout that they expect, and returns the paths of the programs. */
export async function unpackBuilder(directory: string): Promise<{ build: string; runtime: string }> {
  const images = join(directory, "guest-image");
  await mkdir(images, { recursive: true });
  const files = [
    [join(directory, "debian-mirror"), debianMirror],
    [join(images, "build"), builder],
    [join(images, "initramfs-init"), initramfsInit],
    [join(images, "runtime"), runtimeBuilder],
    [join(images, "unpacker-init"), unpackerInit],
  ] as const;
  for (const [path, text] of files) {
    await writeFile(path, text);
    await chmod(path, 0o755);
  }
  await writeFile(join(images, "npm.tgz"), await readFile(npmArchive));
  return { build: join(images, "build"), runtime: join(images, "runtime") };
}
