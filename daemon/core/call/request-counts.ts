/** Counts and durations of answered requests: by transport, operation and class of status, never by caller. */
import type { Source } from "../../../shared/api/audit.ts";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import { Histogram } from "../histogram.ts";

/** From an answer out of memory to the longest wait. */
const BOUNDS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

export interface RequestCount {
  door: Source;
  operation: string;
  /** Number of answers with 1xx, 2xx, …: the first is always 0. */
  classes: number[];
  /** Time to the start of the answer, in seconds. */
  durations: Histogram;
}

export class RequestCounts {
  readonly #counts = new Map<Source, Map<string, RequestCount>>();
  readonly #problems = new Map<ErrorCode, number>();

  /**
   * `operation` must be a name of the contract: other names would be unbounded. `problem`: the error code of a refused or failed request.
   */
  note(door: Source, operation: string, status: number, durationMs: number, problem: ErrorCode | null): void {
    const count = this.#counts.get(door)?.get(operation) ?? this.#begin(door, operation);
    const of = Math.trunc(status / 100);
    count.classes[of] = (count.classes[of] ?? 0) + 1;
    count.durations.note(durationMs / 1000);
    if (problem !== null) this.#problems.set(problem, (this.#problems.get(problem) ?? 0) + 1);
  }

  all(): RequestCount[] {
    return [...this.#counts.values()].flatMap((ofDoor) => [...ofDoor.values()]);
  }

  /** Number of refused or failed requests, by error code. */
  problems(): ReadonlyMap<ErrorCode, number> {
    return this.#problems;
  }

  #begin(door: Source, operation: string): RequestCount {
    const ofDoor = this.#counts.get(door) ?? new Map<string, RequestCount>();
    const count = { door, operation, classes: [0, 0, 0, 0, 0, 0], durations: new Histogram(BOUNDS_SECONDS) };
    this.#counts.set(door, ofDoor.set(operation, count));
    return count;
  }
}
