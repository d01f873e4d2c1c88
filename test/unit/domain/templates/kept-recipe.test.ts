/** Recipes that are stored beside templates, and templates as the base of a Dockerfile. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makePaths, type Paths } from "../../../../daemon/core/config/paths.ts";
import { readDockerfile } from "../../../../daemon/domain/templates/dockerfile/read.ts";
import { baseOf, keepRecipe, keptRecipe, onBase } from "../../../../daemon/domain/templates/kept-recipe.ts";
import { type Recipe, readRecipe } from "../../../../daemon/domain/templates/recipe.ts";

let home: string;
let paths: Paths;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-kept-"));
  paths = makePaths({ data_dir: home, runtime_dir: home });
});
afterEach(() => rmSync(home, { recursive: true }));

const PACKAGES = { suite: "trixie", packages: ["git"], tools: ["git"], min_memory_mib: 512, default_memory_mib: 1024 };
const OF_FILE: Recipe = {
  ...{ template_id: "app", description: "Dockerfile", dockerfile: "/Dockerfile", tools: [] },
  ...{ min_memory_mib: 256, default_memory_mib: 512, disk_mib: 8192 },
};

/** Publishes a template that was built from this recipe; null is the shipped one. */
async function publish(name: string, recipe: object | null): Promise<Recipe | null> {
  const directory = paths.template(name);
  mkdirSync(directory, { recursive: true });
  symlinkSync("version", join(directory, "current"));
  const whole = recipe && ({ template_id: name, description: "", disk_mib: 4096, ...recipe } as Recipe);
  await keepRecipe(directory, whole ?? readRecipe(name, undefined), whole === null ? {} : { recipe: whole });
  return whole;
}

const from = (image: string) => baseOf(paths, readDockerfile(`FROM ${image}\nRUN true`));

test("FROM with the name of a package template uses its recipe", async () => {
  await publish("default", null);
  const own = await publish("tools", PACKAGES);
  expect(await from("default")).toEqual(readRecipe("default", undefined));
  expect(await from("tools")).toEqual(own);
  expect(await keptRecipe(paths, "tools")).toEqual({ recipe: own, args: {} });
});

test.each(["none", "python", "default:1", "docker.io/library/default"])("FROM %s is an image", async (image) => {
  await publish("default", null);
  await publish("python", { ...PACKAGES, packages: undefined, from: "docker://python:3.13" });
  expect(await from(image)).toBe(null);
});

test("no Dockerfile has no base", async () => {
  expect(await baseOf(paths, null)).toBe(null);
});

test("a template with its own steps is rejected as a base", async () => {
  await publish("tools", { ...PACKAGES, steps: ["true"] });
  await expect(from("tools")).rejects.toMatchObject({ code: "validation_failed" });
});

test("a template without a stored recipe must be rebuilt first", async () => {
  mkdirSync(paths.template("old"), { recursive: true });
  symlinkSync("version", join(paths.template("old"), "current"));
  await expect(from("old")).rejects.toMatchObject({ code: "invalid_state" });
});

test("a recipe on a base has its packages, its minimum memory, and its programs unless it starts its own", () => {
  const { dockerfile: _, ...plain } = OF_FILE;
  const base: Recipe = { ...plain, ...PACKAGES, start: "dockerd &", ready: "docker info" };
  const { suite, packages, tools, min_memory_mib, default_memory_mib, start, ready } = base;
  const kept = { ...OF_FILE, suite, packages, tools, min_memory_mib };
  expect(onBase(OF_FILE, base)).toEqual({ ...kept, default_memory_mib: 512, start, ready });
  expect(onBase({ ...OF_FILE, default_memory_mib, start: "image" }, base)).toEqual({
    ...kept,
    default_memory_mib,
    start: "image",
  });
});
