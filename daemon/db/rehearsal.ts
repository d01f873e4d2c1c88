/**
 * Owns the trial of changes: what they would come to is found out in a transaction that is taken back, before it is true anywhere. What
 * of a change is this host's alone, such as its record, is done once it is.
 *
 *   rehearse   works run one after another ──▶ what each returns, and its local steps ──▶ all is taken back
 *   commit     the change is made as it was found out, and the local steps run with it
 */
import type { Queries } from "./client.ts";

export type LocalStep = (queries: Queries) => void;

export interface Tried<T> {
  value: T;
  /** What is left to do here once it is true. */
  steps: readonly LocalStep[];
}

/** What a work has come to: or what it threw. */
export type Rehearsed<T> = Tried<T> | { error: unknown };

interface Trial {
  steps: LocalStep[];
  /** Whether it writes what is this host's alone, which is done again once it is true. */
  writesHere: boolean;
}

const open = new WeakMap<Queries, Trial>();

/** Runs what is this host's alone: at once, or while a change is only tried, once it is true. Within a transaction. */
export function locally(queries: Queries, step: LocalStep): void {
  const trial = open.get(queries);
  if (trial) trial.steps.push(step);
  else step(queries);
}

/** The same for what the change depends on, such as what is counted: while it is only tried it runs at once, and again once it is true. */
export function twice<T>(queries: Queries, step: (queries: Queries) => T): T {
  const trial = open.get(queries);
  if (!trial) return step(queries);
  trial.writesHere = true;
  trial.steps.push(step);
  // What it leaves for later it will leave again.
  open.set(queries, { steps: [], writesHere: true });
  try {
    return step(queries);
  } finally {
    open.set(queries, trial);
  }
}

/** Whether a change is only tried just now; null: it is not. */
export function trialOf(queries: Queries): Readonly<Pick<Trial, "writesHere">> | null {
  return open.get(queries) ?? null;
}

/** Runs a work as a trial; what it throws is thrown. `seen` is called within it. */
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
