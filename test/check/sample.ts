/**
 * The files that a check leaves out, chosen by a printed seed: it runs a third of the longest files, and on a host so slow that a ring
 * would not finish in its time, even fewer files. `sample.ts RING [SECONDS]` prints vitest's arguments that exclude the others.
 */
import { globSync } from "node:fs";
import { Chance } from "../harness/random.ts";
import { committedDurations, lastRun, type MeasuredFile, SHORT_SECONDS } from "./durations.ts";

/** By ring, files of half a minute or more, each about one feature that other files use as well. */
export const SAMPLED: Record<string, readonly string[]> = {
  api: [
    "test/api/storage/audit.test.ts",
    "test/api/people/billing.test.ts",
    "test/api/hostile/rows.test.ts",
    "test/api/rooms/hostile-drives.test.ts",
    "test/api/hosts/attack.test.ts",
    "test/api/hosts/events.test.ts",
    "test/api/hosts/failures.test.ts",
    "test/api/hosts/move.test.ts",
    "test/api/storage/idempotency-crash.test.ts",
    "test/api/people/mail.test.ts",
    "test/api/people/people-attacks.test.ts",
    "test/api/people/people-sweep.test.ts",
    "test/api/rooms/room-backup.test.ts",
    "test/api/traces.test.ts",
    "test/api/webhooks.test.ts",
  ],
  vm: [
    "test/vm/rooms/clones.test.ts",
    "test/vm/egress-rate.test.ts",
    "test/vm/files.test.ts",
    "test/vm/full-disks.test.ts",
    "test/vm/hosts/hibernate.test.ts",
    "test/vm/clients/hub-windows.test.ts",
    "test/vm/templates/images.test.ts",
    "test/vm/kernel-limits.test.ts",
    "test/vm/templates/memory.test.ts",
    "test/vm/rooms/quota.test.ts",
    "test/vm/templates/recipes.test.ts",
    "test/vm/snapshots.test.ts",
    "test/vm/rooms/standby.test.ts",
    "test/vm/templates/template-default.test.ts",
    "test/vm/traces.test.ts",
  ],
};
/** Files of a ring that run at a time. */
const WORKERS = 2;

/** Two thirds of the list. */
export function leftOut(chance: Chance, files: readonly string[]): string[] {
  const left = [...files];
  for (let taken = 0; taken < files.length / 3; taken++) left.splice(chance.whole(0, left.length - 1), 1);
  return left;
}

/**
 * The files of a ring that do not fit into `seconds`, with `slowness` the factor by which each takes longer than its committed duration.
 */
export function beyond(
  chance: Chance,
  files: readonly string[],
  seconds: number,
  slowness: number,
  committed: Readonly<Record<string, number>>,
): string[] {
  const waiting = [...files];
  const left: string[] = [];
  const takes = (file: string) => ((committed[file] ?? SHORT_SECONDS) * slowness) / WORKERS;
  let needed = files.reduce((sum, file) => sum + takes(file), 0);
  while (needed > seconds) {
    const [file = ""] = waiting.splice(chance.whole(0, waiting.length - 1), 1);
    needed -= takes(file);
    left.push(file);
  }
  return left;
}

/** Factor by which these files took longer than in the run with the committed durations; 1 without any. */
export function slownessOf(files: readonly MeasuredFile[], committed: Readonly<Record<string, number>>): number {
  const known = files.filter(({ file }) => file in committed);
  if (known.length === 0) return 1;
  const before = known.reduce((sum, { file }) => sum + (committed[file] ?? 0), 0);
  return known.reduce((sum, { seconds }) => sum + seconds, 0) / before;
}

if (import.meta.main && process.env.ROOMD_TEST_LONG !== "1") {
  const [ring = "", seconds] = process.argv.slice(2);
  const chance = new Chance();
  const long = leftOut(chance, SAMPLED[ring] ?? []);
  const others = globSync(`test/${ring}/**/*.test.ts`).filter((file) => !long.includes(file));
  const committed = committedDurations();
  const late =
    seconds === undefined
      ? []
      : beyond(chance, others.toSorted(), Number(seconds), slownessOf(lastRun(), committed), committed);
  console.error(
    `left out: ${long.join(", ")}; ROOMD_TEST_SEED=${chance.seed} chooses the same, ROOMD_TEST_LONG=1 leaves none out`,
  );
  if (late.length > 0) console.error(`left out, since this host is slow: ${late.join(", ")}`);
  console.log([...long, ...late].flatMap((file) => ["--exclude", file]).join("\n"));
}
