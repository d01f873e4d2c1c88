/** Loads optional data of a page: a refusal is part of the result. */
import type { Problem } from "../../../shared/api/errors.ts";
import { Refused } from "../data/api.ts";

export type OrProblem<T> = { data: T; problem: null } | { data: null; problem: Problem };

/** Rethrows any error that is not a refusal. */
export async function loadOrProblem<T>(load: () => Promise<T>): Promise<OrProblem<T>> {
  try {
    return { data: await load(), problem: null };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { data: null, problem: error.problem };
  }
}
