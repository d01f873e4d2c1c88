/** Samples of long tables of cases: a third of them in a run, by a seed that is printed; all with ROOMD_TEST_LONG=1. */
import { LONG } from "./guests.ts";
import { Chance } from "./random.ts";

export function sampled<T>(label: string, cases: readonly T[], most = Math.ceil(cases.length / 3)): T[] {
  if (LONG || cases.length <= most) return [...cases];
  const chance = new Chance();
  const left = [...cases];
  const taken = Array.from({ length: most }, () => left.splice(chance.whole(0, left.length - 1), 1)[0] as T);
  console.log(
    `${label}: ${most} of ${cases.length}, ROOMD_TEST_SEED=${chance.seed} chooses the same; ROOMD_TEST_LONG=1 has all`,
  );
  return cases.filter((each) => taken.includes(each));
}
