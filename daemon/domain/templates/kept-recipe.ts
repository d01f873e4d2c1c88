/**
 * The recipe of a template of the host: stored beside the template, for a refresh and for Dockerfiles based on this template (`FROM
 * default`).
 */
import { existsSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TEMPLATE_PATTERN } from "../../../shared/api/templates.ts";
import type { OrgId } from "../../../shared/ids.ts";
import type { Paths } from "../../core/config/paths.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import type { Dockerfile } from "./dockerfile/read.ts";
import { invalidRecipe, type Recipe, readRecipe } from "./recipe.ts";
import { publishedVersion } from "./registry.ts";

const TEMPLATE_ID = new RegExp(TEMPLATE_PATTERN);

/** Name of the file next to a template's versions. */
const KEPT_RECIPE = "recipe.json";

export interface KeptRecipe {
  /** Null: the recipe shipped with roomd. */
  recipe: Recipe | null;
  args: Readonly<Record<string, string>>;
}

/** Readable by root only: build arguments may contain secrets. */
export async function keepRecipe(
  home: string,
  recipe: Recipe,
  options: { recipe?: unknown; args?: KeptRecipe["args"] | undefined },
): Promise<void> {
  const kept: KeptRecipe = { recipe: options.recipe === undefined ? null : recipe, args: options.args ?? {} };
  const path = join(home, KEPT_RECIPE);
  await writeFile(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Throws template_not_found, and invalid_state for a template that an older roomd has built. */
export async function keptRecipe(paths: Paths, templateId: string): Promise<KeptRecipe> {
  const home = homeOf(paths, templateId, null);
  try {
    return JSON.parse(await readFile(join(home, KEPT_RECIPE), "utf8")) as KeptRecipe;
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    throw new ServiceError("invalid_state", {
      detail: `The recipe of template ${templateId} is no longer stored.`,
      hint: "Build or import the template again.",
    });
  }
}

/**
 * The recipe of the host's template named by FROM; null if no such template exists, or if it was made from an image: FROM then names an
 * image. Throws validation_failed for a template with separate steps, and invalid_state under the condition of `keptRecipe`.
 */
export async function baseOf(paths: Paths, file: Dockerfile | null): Promise<Recipe | null> {
  const name = file?.name ?? null;
  if (name === null || publishedVersion(paths.template(name)) === null) return null;
  const base = (await keptRecipe(paths, name)).recipe ?? readRecipe(name, undefined);
  if (base.packages === undefined) return null;
  if (base.steps === undefined) return base;
  throw invalidRecipe([`FROM ${name}: the template was built with its own steps, which a Dockerfile cannot continue`]);
}

/** Applies a Dockerfile's recipe to the packages of `base`; starts the programs of `base` unless the recipe starts others. */
export function onBase(recipe: Recipe, base: Recipe): Recipe {
  const { suite, packages, tools, start, ready, ready_timeout_seconds, before_save, restored } = base;
  const started = { start, ready, ready_timeout_seconds, before_save, restored };
  const set = Object.fromEntries(Object.entries(started).filter(([, value]) => value !== undefined));
  const min_memory_mib = Math.max(base.min_memory_mib, recipe.min_memory_mib);
  return {
    ...(recipe.start === undefined ? set : {}),
    ...recipe,
    ...{ suite, packages, tools, min_memory_mib },
    default_memory_mib: Math.max(min_memory_mib, recipe.default_memory_mib),
  } as Recipe;
}

/** The directory of an existing template. Throws template_not_found. */
export function homeOf(paths: Paths, templateId: string, owner: OrgId | null): string {
  // A name such as ".." is a directory too.
  const home = TEMPLATE_ID.test(templateId) ? paths.template(templateId, owner) : null;
  if (home !== null && existsSync(home)) return home;
  throw new ServiceError("template_not_found", { detail: `There is no template ${templateId}.` });
}
