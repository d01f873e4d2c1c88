/** Durations of test files: those of the last run, in $ROOMD_TEST_DIR, and the committed ones, by which the longest file starts first. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** One test file of a run; `startedAt` is in milliseconds since the epoch. */
export interface MeasuredFile {
  /** Relative to the root of the repository. */
  file: string;
  /** The vitest project, a folder of test/. */
  ring: string;
  startedAt: number;
  /** From the import of the file to the end of its last hook. */
  seconds: number;
}

/** The committed durations, in seconds by file; shorter ones than SHORT_SECONDS are not in it. */
const COMMITTED = resolve(import.meta.dirname, "durations.json");
/** A file without a committed duration counts as this long. */
export const SHORT_SECONDS = 3;

/** Directory of a run's measurements and of the files that its tests share. */
export const TEST_DIR = process.env.ROOMD_TEST_DIR ?? "/var/tmp/roomd-test";

/** The parts that `packaging/check` runs in parallel; each writes its own file of durations. */
const PARTS = ["api", "host", "unit", "vm"] as const;

/** Path of the durations that a part of the check has measured. */
export function measuredPath(part: string): string {
  return join(TEST_DIR, `durations-${part}.json`);
}

/** The files of the last run, of those parts that have run. Throws if none exists. */
export function lastRun(): MeasuredFile[] {
  const paths = PARTS.map(measuredPath).filter((path) => existsSync(path));
  if (paths.length === 0) throw new Error(`there are no durations in ${TEST_DIR}: run packaging/check first`);
  return paths.flatMap((path) => JSON.parse(readFileSync(path, "utf8")) as MeasuredFile[]);
}

export function committedDurations(): Record<string, number> {
  return JSON.parse(readFileSync(COMMITTED, "utf8")) as Record<string, number>;
}

/** The text of the committed file for these durations, longest first; `before` has those of files that the run left out. */
export function asCommitted(files: readonly MeasuredFile[], before: Record<string, number> = {}): string {
  const measured = Object.fromEntries(files.map(({ file, seconds }) => [file, Math.round(seconds)]));
  const long = Object.entries({ ...before, ...measured }).filter(([, seconds]) => seconds >= SHORT_SECONDS);
  return `${JSON.stringify(Object.fromEntries(long.sort(([, a], [, b]) => b - a)), null, 2)}\n`;
}

export function keepCommitted(files: readonly MeasuredFile[]): Promise<number> {
  const before = Object.entries(committedDurations()).filter(([file]) => existsSync(file));
  return Bun.write(COMMITTED, asCommitted(files, Object.fromEntries(before)));
}
