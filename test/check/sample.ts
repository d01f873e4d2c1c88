/**
 * Files of the ring with guests of which a check runs a third, chosen by a seed that is printed: each takes half a minute or more under
 * emulation, and is about one feature that other files use as well. Prints vitest's arguments that leave the others out.
 */
import { Chance } from "../harness/random.ts";

export const SAMPLED = [
  "test/vm/clones.test.ts",
  "test/vm/egress-rate.test.ts",
  "test/vm/files.test.ts",
  "test/vm/full-disks.test.ts",
  "test/vm/hibernate.test.ts",
  "test/vm/hub-windows.test.ts",
  "test/vm/images.test.ts",
  "test/vm/kernel-limits.test.ts",
  "test/vm/memory.test.ts",
  "test/vm/quota.test.ts",
  "test/vm/recipes.test.ts",
  "test/vm/snapshots.test.ts",
  "test/vm/standby.test.ts",
  "test/vm/template-default.test.ts",
  "test/vm/traces.test.ts",
];

/** The files that this run leaves out. */
export function leftOut(chance: Chance, files: readonly string[] = SAMPLED): string[] {
  const left = [...files];
  for (let taken = 0; taken < files.length / 3; taken++) left.splice(chance.whole(0, left.length - 1), 1);
  return left;
}

if (import.meta.main && process.env.ROOMD_TEST_LONG !== "1") {
  const chance = new Chance();
  const files = leftOut(chance);
  console.error(
    `left out: ${files.join(", ")}; ROOMD_TEST_SEED=${chance.seed} chooses the same, ROOMD_TEST_LONG=1 leaves none out`,
  );
  console.log(files.flatMap((file) => ["--exclude", file]).join("\n"));
}
