/** Owns how many requests were answered, and how long that took: by door, operation and class of status, never by who asked. */
import type { Source } from "../../shared/api/audit.ts";

export interface RequestCount {
  door: Source;
  operation: string;
  /** How many were answered with 1xx, 2xx, …: the first is none's. */
  classes: number[];
  /** Until the answer begins. */
  durationMs: number;
}

export class RequestCounts {
  readonly #counts = new Map<Source, Map<string, RequestCount>>();

  /** `operation` is a name of the list: of others there is no end. */
  note(door: Source, operation: string, status: number, durationMs: number): void {
    const count = this.#counts.get(door)?.get(operation) ?? this.#begin(door, operation);
    const of = Math.trunc(status / 100);
    count.classes[of] = (count.classes[of] ?? 0) + 1;
    count.durationMs += durationMs;
  }

  all(): RequestCount[] {
    return [...this.#counts.values()].flatMap((ofDoor) => [...ofDoor.values()]);
  }

  #begin(door: Source, operation: string): RequestCount {
    const ofDoor = this.#counts.get(door) ?? new Map<string, RequestCount>();
    const count = { door, operation, classes: [0, 0, 0, 0, 0, 0], durationMs: 0 };
    this.#counts.set(door, ofDoor.set(operation, count));
    return count;
  }
}
