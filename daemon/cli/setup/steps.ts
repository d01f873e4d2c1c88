/** Owns how a long piece of work shows where it is: numbered steps, what each came to, and how long it took. */
import { print, printable, say } from "../output.ts";

/** Runs one step; `note` adds a line below its title, and what it returns is its last. */
export type Step = (title: string, work: (note: (line: string) => void) => Promise<string>) => Promise<void>;

/** Steps on standard output, or on standard error where that is for programs. */
export function numberedSteps(total: number, forPrograms: boolean): Step {
  const show = forPrograms ? say : print;
  let number = 0;
  return async (title, work) => {
    number += 1;
    await show(`[${number}/${total}] ${title}`);
    const begun = performance.now();
    const outcome = await work((line) => void show(`      ${printable(line)}`));
    await show(`      ${outcome} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  };
}
