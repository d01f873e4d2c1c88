/**
 * The check of a change, in under five minutes: `npm run check:quick [BASE]` runs types, style, unused code, the house ring, and the tests
 * that the change since BASE touches (default: the merge base with origin/main; uncommitted and new files included). Prints the chosen
 * tests with reasons, and the omitted ones.
 */
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { committedDurations, SHORT_SECONDS } from "./durations.ts";
import { type Source, touchedTests, withinTime } from "./touched.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** For the touched tests; the rest takes up to two minutes. */
const TEST_SECONDS = 150;
/** The overhead of starting a test file. */
const START_SECONDS = 0.7;
const MAX_SHOWN = 12;
const VITEST = ["--bun", "node_modules/.bin/vitest", "run"];

/** The lines that git prints; null if it fails. */
function git(...args: string[]): string[] | null {
  const { status, stdout } = spawnSync("git", args, { cwd: ROOT, encoding: "utf8" });
  return status === 0 ? stdout.split("\n").filter(Boolean) : null;
}

/** The files that differ from `base`, deleted ones included: their importers are touched. */
function changedSince(base: string): string[] {
  const differing = git("diff", "--name-only", "--no-renames", base);
  if (differing === null) throw new Error(`git knows no commit ${base}: name another as BASE`);
  return [...differing, ...(git("ls-files", "--others", "--exclude-standard") ?? [])];
}

function allSources(): Source[] {
  const kept = git("ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate") ?? [];
  const deleted = new Set(git("ls-files", "--deleted"));
  return kept
    .filter((path) => /\.(tsx?|mjs)$/.test(path) && !deleted.has(path))
    .map((path) => ({ path, text: readFileSync(resolve(ROOT, path), "utf8") }));
}

/** Runs a command and returns whether it succeeded; its output is shown if it failed. */
async function passes(name: string, command: string, args: readonly string[]): Promise<boolean> {
  const began = performance.now();
  const child = spawn(command, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => printed.push(chunk));
  const status = await new Promise<number | null>((done) => child.once("close", done));
  console.log(`== ${name}: ${status === 0 ? "passed" : "FAILED"} in ${since(began)}`);
  if (status !== 0) console.log(Buffer.concat(printed).toString());
  return status === 0;
}

const since = (began: number) => `${((performance.now() - began) / 1000).toFixed(1)} s`;

/** Prints the choice, the closest tests first. */
function show(title: string, tests: readonly { file: string; why: string }[]): void {
  if (tests.length === 0) return;
  console.log(`${title}: ${tests.length}`);
  for (const { file, why } of tests.slice(0, MAX_SHOWN)) console.log(`   ${file}: ${why}`);
  if (tests.length > MAX_SHOWN) console.log(`   and ${tests.length - MAX_SHOWN} more`);
}

async function main(): Promise<boolean> {
  const began = performance.now();
  const [named, ...more] = process.argv.slice(2);
  if (more.length > 0 || named?.startsWith("-")) throw new Error("its only argument is BASE, a commit");
  const base = named ?? git("merge-base", "HEAD", "origin/main")?.[0] ?? "HEAD";
  const changed = changedSince(base);
  const seconds = committedDurations();
  const secondsOf = (file: string) => START_SECONDS + (seconds[file] ?? SHORT_SECONDS);
  const { chosen, left } = withinTime(touchedTests(changed, allSources()), secondsOf, TEST_SECONDS);
  console.log(`${changed.length} files differ from ${base.slice(0, 12)}`);
  show("tests chosen", chosen);
  show("tests left out, which take too long here: npm test -- FILE runs one of them", left);

  // First and alone: it may install packages that the others load.
  if (!(await passes("build", "packaging/build", []))) return false;
  const stages = await Promise.all([
    passes("types", "npm", ["run", "--silent", "typecheck"]),
    passes("style", "node_modules/.bin/biome", ["ci", "--colors=off", "."]),
    passes("unused code", "node_modules/.bin/knip", ["--no-progress"]),
  ]);
  const files = ["test/house", ...chosen.map(({ file }) => file)];
  console.log(`== house ring and ${chosen.length} touched files`);
  const tests = spawnSync("node_modules/.bin/bun", [...VITEST, ...files], { cwd: ROOT, stdio: "inherit" });
  const isGood = stages.every(Boolean) && tests.status === 0;
  console.log(`${isGood ? "passed" : "FAILED"} in ${since(began)}; packaging/check checks everything`);
  return isGood;
}

process.exit((await main()) ? 0 : 1);
