/** Owns which executions of one sandbox the host knows of, and what it knows: of all else that a guest tells nothing is kept. */
import { now } from "../../../core/clock.ts";
import type { Span } from "../../../core/traces.ts";
import type { AuditEntry } from "../../audit/index.ts";
import { after, DUTIES, type Happening, type Stage } from "./stage.ts";

/** A guest runs 64, and tells of ends that are some seconds old; one that never tells loses the oldest. */
const MOST_KNOWN = 1024;

/** Who began an execution, and what they began. */
export interface Beginner extends Pick<AuditEntry, "actor" | "source" | "request_id" | "ip"> {
  argv: string[];
  /** Ends with it; of one that an earlier daemon began nothing is told. */
  span: Span;
  /** Of its beginning; absent where there is none. */
  trace_id?: string | undefined;
}

/** One execution, as long as anything is still to be done about it. */
export class Known {
  /** Who began it, and what; null when nothing tells that. */
  by: Beginner | null;
  /** When it began, as far as the host knows. */
  since = now();
  #stage: Stage = "unknown";

  constructor(by: Beginner | null, ...what: Happening[]) {
    this.by = by;
    this.happened(...what);
  }

  get stage(): Stage {
    return this.#stage;
  }

  get duties() {
    return DUTIES[this.#stage];
  }

  happened(...what: Happening[]): void {
    for (const each of what) this.#stage = after(this.#stage, each);
  }
}

export class KnownExecutions {
  readonly #all = new Map<string, Known>();
  readonly #changed: () => void;

  /** `changed` is called after one of them may have begun or ended. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get size(): number {
    return this.#all.size;
  }

  get(execId: string): Known | undefined {
    return this.#all.get(execId);
  }

  /** Those that run, or may: a call waits for them, or they were left running. */
  running(): [string, Known][] {
    return [...this.#all].filter(([, { duties }]) => duties.waits || duties.runs);
  }

  /** Of one that is not known yet. */
  add(execId: string, by: Beginner | null, ...what: Happening[]): Known {
    const known = new Known(by, ...what);
    this.#all.set(execId, known);
    if (this.#all.size > MOST_KNOWN) {
      const [oldest] = [...this.#all].find(([, { duties }]) => !duties.waits) ?? [];
      if (oldest !== undefined) this.forget(oldest);
    }
    this.#changed();
    return known;
  }

  /** Execution `known` runs on by itself, as `by` began it. */
  begun(known: Known, by: Beginner | null, ...what: Happening[]): void {
    known.by = by;
    known.happened("begun", ...what);
    this.#changed();
  }

  /** Has it happened to one of them, or to one that they do not know any more; drops what is done with. */
  happened(execId: string, known: Known, ...what: Happening[]): void {
    known.happened(...what);
    if (known.stage === "unknown" && this.#all.get(execId) === known) this.forget(execId);
    else this.#changed();
  }

  forget(execId: string): void {
    const known = this.#all.get(execId);
    // Of one that has ended this is told already: what is left is cut off with its sandbox, or was begun by nobody after all.
    known?.by?.span.end({ problem: "not_known", attributes: { "roomd.exec_id": execId } });
    this.#all.delete(execId);
    this.#changed();
  }

  forgetAll(): void {
    for (const execId of [...this.#all.keys()]) this.forget(execId);
  }
}
