/** The claims of docs/guarantees.md with their tests, and when the last check ran these: `npm run check:guarantees` prints them. */
import { readFileSync } from "node:fs";
import { lastRun, type MeasuredFile } from "./durations.ts";

export interface Claim {
  text: string;
  /** Paths of test files, relative to the root of the repository. */
  tests: string[];
}

const PAGE = "docs/guarantees.md";

/** The numbered claims of the page: each is a line, and its tests are the next one. */
export function claimsIn(page: string): Claim[] {
  return [...page.matchAll(/^\d+\. (.+)\n +Tests: (.+)$/gm)].map(([, text = "", tests = ""]) => ({
    text,
    tests: [...tests.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path),
  }));
}

/** The claims that the page does not make. */
export function limitsIn(page: string): string[] {
  const [, limits = ""] = page.split("\n## Not guaranteed\n");
  return [...limits.matchAll(/^- (.+)$/gm)].map(([, text = ""]) => text);
}

/** The lines of each claim: its text, and for each of its tests when the last check started it. */
export function lastRuns(claims: readonly Claim[], files: readonly MeasuredFile[]): string[] {
  const started = new Map(files.map(({ file, startedAt }) => [file, startedAt]));
  return claims.flatMap(({ text, tests }, index) => [
    `${index + 1}. ${text}`,
    ...tests.map((test) => {
      const at = started.get(test);
      const when = at === undefined ? "not in the last check" : new Date(at).toISOString().slice(0, 19);
      return `     ${when.padEnd(21)}  ${test}`;
    }),
  ]);
}

if (import.meta.main) console.log(lastRuns(claimsIn(readFileSync(PAGE, "utf8")), lastRun()).join("\n"));
