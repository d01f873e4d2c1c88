/** Progress display of long work: numbered steps, the outcome and duration of each. */
import { print, printable, say } from "../../kit/output.ts";

/** Runs one step; `note` adds a line below its title, and its result is the last line. */
export type Step = (title: string, work: (note: (line: string) => void) => Promise<string>) => Promise<void>;

/** Steps on standard output, or on standard error if that is reserved for programs. */
export function numberedSteps(total: number, forPrograms: boolean): Step {
  const show = forPrograms ? say : print;
  let number = 0;
  return async (title, work) => {
    number += 1;
    await show(`[${number}/${total}] ${title}`);
    const startedAt = performance.now();
    const outcome = await work((line) => void show(`      ${printable(line)}`));
    await show(`      ${outcome} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)`);
  };
}
