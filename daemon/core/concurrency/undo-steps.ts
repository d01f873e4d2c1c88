/**
 * Sequences of steps with undo: each step registers its undo before the next starts, is timed, and on a failure all steps so far are undone
 * in reverse.
 */

import { monotonicMs } from "../clock.ts";
import { faultPoint } from "../fault-points.ts";
import { describeError } from "../service-error.ts";

export interface Step<Context> {
  name: string;
  /** Executes the step. May run twice. */
  run(context: Context): Promise<void>;
  /** Undoes it, or the leftovers of a partial run. May run twice, and if the step never ran. */
  undo(context: Context): Promise<void>;
}

export class StepError extends Error {
  override name = "StepError";
  readonly step: string;
  /** Steps with leftovers, because they could not be undone. */
  readonly not_undone: readonly string[];
  constructor(step: string, cause: unknown, notUndone: readonly string[]) {
    super(`${step}: ${describeError(cause)}`, { cause });
    this.step = step;
    this.not_undone = notUndone;
  }
}

/**
 * Runs the steps in order and returns the milliseconds of each as `{<name>_ms}`.
 * On a failure undoes the failed step and all before it, in reverse, and throws StepError. No step starts after `signal` is aborted; ending
 * a step in progress is up to the caller that aborts.
 */
export async function runSteps<Context>(
  steps: readonly Step<Context>[],
  context: Context,
  onUndoFailed: (step: string, error: unknown) => void,
  signal?: AbortSignal,
): Promise<Record<string, number>> {
  const timings: Record<string, number> = {};
  for (const [index, step] of steps.entries()) {
    const startedAt = monotonicMs();
    try {
      signal?.throwIfAborted();
      await faultPoint(`run.${step.name}.before`);
      await step.run(context);
      await faultPoint(`run.${step.name}.after`);
    } catch (error) {
      throw new StepError(step.name, error, await undoSteps(steps.slice(0, index + 1), context, onUndoFailed));
    }
    timings[`${step.name}_ms`] = Math.round((monotonicMs() - startedAt) * 10) / 10;
  }
  return timings;
}

/** Undoes the steps in reverse, and returns the names of those that failed. A failure is reported and does not stop the others. */
export async function undoSteps<Context>(
  steps: readonly Step<Context>[],
  context: Context,
  onUndoFailed: (step: string, error: unknown) => void,
): Promise<string[]> {
  const notUndone: string[] = [];
  for (const step of steps.toReversed()) {
    try {
      await faultPoint(`undo.${step.name}.before`);
      await step.undo(context);
      await faultPoint(`undo.${step.name}.after`);
    } catch (error) {
      notUndone.push(step.name);
      onUndoFailed(step.name, error);
    }
  }
  return notUndone;
}
