/**
 * Dry run of changes: their results are determined in a transaction that is rolled back, before they are committed anywhere. The part of a
 * change that is local to this host, such as its record, is done after the commit.
 *
 *   rehearse   works run one after another ──▶ each one's result and local steps ──▶ all is rolled back
 *   commit     the change is made as it was rehearsed, and the local steps run with it
 */
import type { Queries } from "./client.ts";

export type LocalStep = (queries: Queries) => void;

export interface Tried<T> {
  value: T;
  /** Local steps that remain after the commit. */
  steps: readonly LocalStep[];
}

/** Result of a work, or its error. */
export type Rehearsed<T> = Tried<T> | { error: unknown };

interface Trial {
  steps: LocalStep[];
  /** Whether it writes local rows, which are written again after the commit. */
  writesHere: boolean;
}

const open = new WeakMap<Queries, Trial>();

/** Runs a local step: immediately, or, during a dry run, after the commit. Within a transaction. */
export function locally(queries: Queries, step: LocalStep): void {
  const trial = open.get(queries);
  if (trial) trial.steps.push(step);
  else step(queries);
}

/**
 * The same for local state that the change depends on, such as counters: during a dry run it runs immediately, and again after the commit.
 */
export function twice<T>(queries: Queries, step: (queries: Queries) => T): T {
  const trial = open.get(queries);
  if (!trial) return step(queries);
  trial.writesHere = true;
  trial.steps.push(step);
  // The steps that it registers will be registered again then.
  open.set(queries, { steps: [], writesHere: true });
  try {
    return step(queries);
  } finally {
    open.set(queries, trial);
  }
}

/** The current dry run; null outside of one. */
export function trialOf(queries: Queries): Readonly<Pick<Trial, "writesHere">> | null {
  return open.get(queries) ?? null;
}

/** Runs a work as a dry run and throws its errors. `seen` is called within it. */
export function tried<T>(queries: Queries, work: (queries: Queries) => T, seen: () => void): Tried<T> {
  const trial: Trial = { steps: [], writesHere: false };
  open.set(queries, trial);
  try {
    const value = work(queries);
    seen();
    return { value, steps: trial.steps };
  } finally {
    open.delete(queries);
  }
}
