/** Executions of one sandbox that the host tracks, and its data about them: nothing is kept about other executions that a guest reports. */

import type { Span } from "../../../core/call/traces.ts";
import { now } from "../../../core/clock.ts";
import type { AuditEntry } from "../../audit/index.ts";
import { type Accounting, after, DUTIES, type Happening } from "./accounting.ts";

/** A guest runs 64, and reports ends that are some seconds old; if it never reports, the oldest entries are evicted. */
const MAX_KNOWN = 1024;

/** The starter of an execution, and the command. */
export interface Beginner extends Pick<AuditEntry, "actor" | "source" | "request_id" | "ip"> {
  argv: string[];
  /** Ends with the execution; NO_SPAN if an earlier daemon started it. */
  span: Span;
  /** Trace of the call that started the execution; absent without a trace. */
  trace_id?: string | undefined;
}

/** One execution, as long as accounting for it is incomplete. */
export class TrackedExecution {
  /** The starter and the command; null if unknown. */
  by: Beginner | null;
  /** Start time, as far as the host knows. */
  since = now();
  #stage: Accounting = "unknown";

  constructor(by: Beginner | null, ...events: Happening[]) {
    this.by = by;
    this.happened(...events);
  }

  get stage(): Accounting {
    return this.#stage;
  }

  get duties() {
    return DUTIES[this.#stage];
  }

  happened(...events: Happening[]): void {
    for (const each of events) this.#stage = after(this.#stage, each);
  }
}

export class ExecutionRegistry {
  readonly #all = new Map<string, TrackedExecution>();
  readonly #changed: () => void;

  /** `changed` is called after an execution may have started or ended. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get size(): number {
    return this.#all.size;
  }

  get(execId: string): TrackedExecution | undefined {
    return this.#all.get(execId);
  }

  /** Executions that run or may run: a call waits for them, or they run in the background. */
  running(): [string, TrackedExecution][] {
    return [...this.#all].filter(([, { duties }]) => duties.waits || duties.runs);
  }

  /** For an execution that is not tracked yet. */
  add(execId: string, by: Beginner | null, ...events: Happening[]): TrackedExecution {
    const known = new TrackedExecution(by, ...events);
    this.#all.set(execId, known);
    if (this.#all.size > MAX_KNOWN) {
      const [oldest] = [...this.#all].find(([, { duties }]) => !duties.waits) ?? [];
      if (oldest !== undefined) this.forget(oldest);
    }
    this.#changed();
    return known;
  }

  /** Execution `known` runs in the background, started by `by`. */
  begun(known: TrackedExecution, by: Beginner | null, ...events: Happening[]): void {
    known.by = by;
    known.happened("begun", ...events);
    this.#changed();
  }

  /** Applies the events to `known`, which may be evicted already; drops it if nothing remains to be done. */
  happened(execId: string, known: TrackedExecution, ...events: Happening[]): void {
    known.happened(...events);
    if (known.stage === "unknown" && this.#all.get(execId) === known) this.forget(execId);
    else this.#changed();
  }

  forget(execId: string): void {
    const known = this.#all.get(execId);
    // No effect if the span has ended: the others were cut off with their sandbox, or were never started after all.
    known?.by?.span.end({ problem: "not_known", attributes: { "roomd.exec_id": execId } });
    this.#all.delete(execId);
    this.#changed();
  }

  forgetAll(): void {
    for (const execId of [...this.#all.keys()]) this.forget(execId);
  }
}
