/**
 * Owns the trial of changes: what they would come to is found out in a transaction that is taken back, before it is true anywhere. What
 * of a change is this host's alone, such as its record, waits until it is.
 *
 *   rehearse   works run one after another ──▶ what each returns, and its local steps ──▶ all is taken back
 *   commit     the change is made as it was found out, and the local steps run with it
 */
import type { Queries } from "./client.ts";

export type LocalStep = (queries: Queries) => void;

/** What a work has come to: what it returned with the steps that are left, or what it threw. */
export type Rehearsed<T> = { value: T; steps: readonly LocalStep[] } | { error: unknown };

const open = new WeakMap<Queries, LocalStep[]>();

/** Runs what is this host's alone: at once, or while a change is only tried, once it is true. Within a transaction. */
export function locally(queries: Queries, step: LocalStep): void {
  const steps = open.get(queries);
  if (steps) steps.push(step);
  else step(queries);
}

/** Runs a work as a trial; what it throws is thrown. */
export function tried<T>(queries: Queries, work: (queries: Queries) => T): { value: T; steps: readonly LocalStep[] } {
  const steps: LocalStep[] = [];
  open.set(queries, steps);
  try {
    return { value: work(queries), steps };
  } finally {
    open.delete(queries);
  }
}
