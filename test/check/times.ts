/**
 * The durations of the last check, for people: `npm run check:times` prints totals by ring and the 40 longest files, --totals the totals
 * only. --keep writes durations.json, the order in which files start.
 */
import { keepCommitted, lastRun, type MeasuredFile } from "./durations.ts";

const LONGEST = 40;

const seconds = (value: number) => `${value.toFixed(1)} s`.padStart(10);

/** A line for each ring, the longest first: files, their sum, and when in the run it began and ended. */
export function totals(files: readonly MeasuredFile[]): string[] {
  const began = Math.min(...files.map(({ startedAt }) => startedAt));
  const endOf = ({ startedAt, seconds }: MeasuredFile) => startedAt + seconds * 1000;
  const rings = Object.entries(Object.groupBy(files, ({ ring }) => ring)).map(([ring, of = []]) => ({
    ring,
    count: of.length,
    sum: of.reduce((sum, { seconds }) => sum + seconds, 0),
    from: (Math.min(...of.map(({ startedAt }) => startedAt)) - began) / 1000,
    to: (Math.max(...of.map(endOf)) - began) / 1000,
  }));
  return rings
    .toSorted((a, b) => b.sum - a.sum)
    .map(
      ({ ring, count, sum, from, to }) =>
        `${ring.padEnd(8)} ${seconds(sum)} in ${count} files, from ${seconds(from).trim()} to ${seconds(to).trim()}`,
    );
}

/** A line for each of the longest files. */
export function longest(files: readonly MeasuredFile[], most = LONGEST): string[] {
  const sorted = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, most);
  return sorted.map((each) => `${seconds(each.seconds)}  ${each.file}`);
}

if (import.meta.main) {
  const options = process.argv.slice(2);
  const unknown = options.find((option) => !["--totals", "--keep"].includes(option));
  if (unknown !== undefined) {
    console.error(`check:times: unknown argument ${unknown}: use --totals, --keep or none.`);
    process.exit(2);
  }
  const files = lastRun();
  console.log(totals(files).join("\n"));
  if (!options.includes("--totals")) console.log(`the ${LONGEST} longest files:\n${longest(files).join("\n")}`);
  if (options.includes("--keep")) await keepCommitted(files);
}
