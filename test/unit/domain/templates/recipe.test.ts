/** Recipes: the shipped ones are valid, and errors of another name its invalid fields. */
import { describe, expect, test } from "vitest";
import { EMBEDDED, readRecipe } from "../../../../daemon/domain/templates/recipe.ts";

const MINE = `
template_id = "mine"
description = "mine"
suite = "trixie"
packages = ["nftables"]
tools = []
min_memory_mib = 512
default_memory_mib = 1024
disk_mib = 4096
`;

describe.each(Object.keys(EMBEDDED))("the recipe of %s", (name) => {
  test("is valid, and sorted", () => {
    const recipe = readRecipe(name, undefined);
    expect(recipe.packages).toEqual([...(recipe.packages ?? [])].sort());
    expect(recipe.default_memory_mib).toBeGreaterThanOrEqual(recipe.min_memory_mib);
  });
});

test("a recipe may have a start program, and a readiness check", () => {
  const recipe = readRecipe("mine", `${MINE}\nstart = "true"\nready = "true"\nready_timeout_seconds = 9\n`);
  expect(recipe).toMatchObject({ start: "true", ready: "true", ready_timeout_seconds: 9 });
});

test("a recipe may have steps, and an egress list for them", () => {
  const recipe = readRecipe(
    "mine",
    `${MINE}\nsteps = ["true", "a\\nb"]\negress_allowlist = ["packages.example.com:443"]\n`,
  );
  expect(recipe).toMatchObject({ steps: ["true", "a\nb"], egress_allowlist: ["packages.example.com:443"] });
});

test.each([
  ["min_memory_mib = 500", /min_memory_mib/],
  ["ready_timeout_seconds = 0", /ready_timeout_seconds/],
  ['start = ""', /start/],
  [`start = "${"x".repeat(65_537)}"`, /start/],
  ["surprise = 1", /surprise/],
  ['steps = [""]', /steps/],
  ['egress_allowlist = ["*"]', /egress_allowlist: /],
  ['ready = "true"', /: ready: .*\bstart\b/],
  ["ready_timeout_seconds = 9", /: ready_timeout_seconds: .*\bstart\b/],
])("%.40s is rejected by name", (line, expected) => {
  const [key = ""] = line.split(" ");
  const text = MINE.split("\n").filter((each) => !each.startsWith(`${key} `));
  expect(() => readRecipe("mine", `${text.join("\n")}\n${line}\n`)).toThrow(expected);
});

test("a recipe for another template is rejected", () => {
  expect(() => readRecipe("yours", MINE)).toThrow(/\bmine\b.*\byours\b/);
});
