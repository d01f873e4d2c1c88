/** Owns asking for what a page can do without: why it was refused is a part of what is there. */
import type { Problem } from "../../../shared/api/errors.ts";
import { Refused } from "../data/api.ts";

export type OrProblem<T> = { data: T; problem: null } | { data: null; problem: Problem };

/** Throws what is no refusal. */
export async function loadOrProblem<T>(load: () => Promise<T>): Promise<OrProblem<T>> {
  try {
    return { data: await load(), problem: null };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { data: null, problem: error.problem };
  }
}
