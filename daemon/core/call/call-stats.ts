/** Statistics of an activity: successes, failures, and durations. */

import { monotonicMs } from "../clock.ts";
import { Histogram } from "../histogram.ts";

const BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

export class CallStats {
  done = 0;
  failed = 0;
  /** Durations of successes and failures, in seconds. */
  readonly times = new Histogram(BOUNDS_SECONDS);

  /** `since` is a monotonic time. */
  note(isDone: boolean, since: number): void {
    if (isDone) this.done++;
    else this.failed++;
    this.times.note((monotonicMs() - since) / 1000);
  }
}
