/**
 * Owns sequences of steps with undo: each step registers how it is undone before the next begins, is timed,
 * and on a failure everything done so far is undone in reverse.
 */
import { faultPoint } from "./fault-points.ts";
import { describeError } from "./service-error.ts";

export interface Step<Context> {
  name: string;
  /** Does the step. May run twice. */
  run(context: Context): Promise<void>;
  /** Undoes it, or what a half-done run left. May run twice, and when the step never ran. */
  undo(context: Context): Promise<void>;
}

export class StepError extends Error {
  override name = "StepError";
  readonly step: string;
  constructor(step: string, cause: unknown) {
    super(`${step}: ${describeError(cause)}`, { cause });
    this.step = step;
  }
}

/**
 * Runs the steps in order and returns the milliseconds of each as `{<name>_ms}`.
 * On a failure undoes the failed step and all before it, in reverse, and throws StepError.
 */
export async function runSteps<Context>(
  steps: readonly Step<Context>[],
  context: Context,
  onUndoFailed: (step: string, error: unknown) => void,
): Promise<Record<string, number>> {
  const timings: Record<string, number> = {};
  for (const [index, step] of steps.entries()) {
    const startedAt = performance.now();
    try {
      await faultPoint(`run.${step.name}.before`);
      await step.run(context);
      await faultPoint(`run.${step.name}.after`);
    } catch (error) {
      await undoSteps(steps.slice(0, index + 1), context, onUndoFailed);
      throw new StepError(step.name, error);
    }
    timings[`${step.name}_ms`] = Math.round((performance.now() - startedAt) * 10) / 10;
  }
  return timings;
}

/** Undoes the steps in reverse. A step that cannot be undone is reported and does not keep the others from it. */
export async function undoSteps<Context>(
  steps: readonly Step<Context>[],
  context: Context,
  onUndoFailed: (step: string, error: unknown) => void,
): Promise<void> {
  for (const step of steps.toReversed()) {
    try {
      await faultPoint(`undo.${step.name}.before`);
      await step.undo(context);
      await faultPoint(`undo.${step.name}.after`);
    } catch (error) {
      onUndoFailed(step.name, error);
    }
  }
}
