/** The tests that a change touches: changed tests, tests that import a changed file, and tests of its noun. Pure. */
import { dirname, join } from "node:path";

export interface Source {
  /** Relative to the repository. */
  path: string;
  text: string;
}

export interface TouchedTest {
  file: string;
  why: string;
  /** 0 if the test itself changed, else how many imports away the change is; the tests of a noun rank after direct imports. */
  distance: number;
}

/** A change this many imports away rarely breaks a test, and half of all tests are this close to the daemon's core. */
const FARTHEST = 3;
const NOUN_DISTANCE = 1.5;
/** Rings with tests that belong to a noun by the words of their path. Guests take too long. */
const NOUN_RINGS = ["unit", "api", "protocol", "web"];
/** Source folders; the next folder or file is the noun. */
const NOUN_FOLDERS = ["daemon/domain", "daemon/host", "daemon/edge", "daemon", "shared/api", "shared", "guest-agent"];
/** Folders and files with names that are no nouns. */
const NO_NOUNS = new Set([
  "main",
  "index",
  "core",
  "db",
  "domain",
  "host",
  "edge",
  "compose",
  "operations",
  "contract",
]);

const isTest = (path: string) => /^test\/.*\.test\.ts$/.test(path);
const ringOf = (path: string) => path.split("/")[1] ?? "";

/** All test files that `changed` touches, the closest first. */
export function touchedTests(changed: readonly string[], sources: readonly Source[]): TouchedTest[] {
  const importers = importersOf(sources);
  const tests = sources.map(({ path }) => path).filter(isTest);
  const found = new Map<string, TouchedTest>();
  const note = (test: TouchedTest) => {
    if ((found.get(test.file)?.distance ?? Number.POSITIVE_INFINITY) > test.distance) found.set(test.file, test);
  };
  for (const path of changed) {
    if (tests.includes(path)) note({ file: path, why: "changed itself", distance: 0 });
    for (const [file, distance] of importing(path, importers)) {
      const why = distance === 1 ? `imports ${path}` : `imports ${path} by way of ${distance - 1} more`;
      if (isTest(file)) note({ file, why, distance });
    }
    const noun = nounOf(path);
    for (const file of noun === null ? [] : tests.filter((test) => isOfNoun(test, noun)))
      note({ file, why: `tests ${noun}, as ${path}`, distance: NOUN_DISTANCE });
  }
  return [...found.values()].sort((a, b) => a.distance - b.distance || a.file.localeCompare(b.file));
}

/** The noun that a source file belongs to, for example `ports` for daemon/domain/ports/expose.ts; null if it has none. */
export function nounOf(path: string): string | null {
  const sdk = /^sdk\/(typescript|python)\//.exec(path)?.[1];
  if (sdk !== undefined) return "sdk";
  if (path.startsWith("docs/")) return "docs";
  const folder = NOUN_FOLDERS.find((each) => path.startsWith(`${each}/`));
  const noun = folder === undefined ? "" : (path.slice(folder.length + 1).split("/")[0] ?? "").replace(/\.\w+$/, "");
  return noun === "" || NO_NOUNS.has(noun) ? null : noun;
}

/** Whether one of the words of a test's path is the noun, in singular or plural. */
function isOfNoun(test: string, noun: string): boolean {
  if (!NOUN_RINGS.includes(ringOf(test))) return false;
  const singular = (word: string) => word.replace(/s$/, "");
  const words = test.replace(/\.test\.ts$/, "").split(/[/._-]/);
  return words.slice(2).some((word) => singular(word) === singular(noun));
}

/** By file, the files that import it. */
function importersOf(sources: readonly Source[]): Map<string, string[]> {
  const importers = new Map<string, string[]>();
  for (const { path, text } of sources) {
    const specifiers = text.matchAll(/\b(?:from|import|import\(|new URL\()\s*["'](\.[^"']+)["']/g);
    for (const [, specifier = ""] of specifiers) {
      const imported = join(dirname(path), specifier);
      importers.set(imported, [...(importers.get(imported) ?? []), path]);
    }
  }
  return importers;
}

/** Files that import `path`, by how many imports away they are. */
function importing(path: string, importers: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const distances = new Map<string, number>();
  let ends = [path];
  for (let distance = 1; distance <= FARTHEST; distance++) {
    ends = ends.flatMap((end) => importers.get(end) ?? []).filter((each) => !distances.has(each) && each !== path);
    for (const each of ends) distances.set(each, distance);
  }
  return distances;
}

/**
 * Splits tests into those within `seconds` of two workers, in their order, and the others. Tests with guests are chosen only if they
 * themselves changed.
 */
export function withinTime(
  tests: readonly TouchedTest[],
  secondsOf: (file: string) => number,
  seconds: number,
): { chosen: TouchedTest[]; left: TouchedTest[] } {
  const chosen: TouchedTest[] = [];
  const left: TouchedTest[] = [];
  let used = 0;
  for (const test of tests) {
    const takes = secondsOf(test.file) / 2;
    const hasGuests = ["vm", "host"].includes(ringOf(test.file));
    const fits = used + takes <= seconds && (!hasGuests || test.distance === 0);
    if (fits) used += takes;
    (fits ? chosen : left).push(test);
  }
  return { chosen, left };
}
