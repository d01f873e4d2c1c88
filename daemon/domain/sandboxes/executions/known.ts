/** Owns which executions of one sandbox the host knows of, and what it knows: of all else that a guest tells nothing is kept. */
import type { AuditEntry } from "../../audit/index.ts";

/** A guest runs 64, and tells of ends that are some seconds old; one that never tells loses the oldest. */
const MOST_KNOWN = 1024;

/** Who began an execution, and what they began. */
export interface Beginner extends Pick<AuditEntry, "actor" | "source" | "request_id" | "ip"> {
  argv: string[];
}

export interface Known {
  /** Who began it, and what; null when nothing tells that. */
  by: Beginner | null;
  /** A caller waits for it, whose own record tells of its end. */
  attended: boolean;
  /** It is among what is metered, or its caller's record puts it there. */
  counted: boolean;
  /** It runs on by itself: until its end the sandbox is in use. */
  begun: boolean;
  ended: PromiseWithResolvers<void>;
}

export class KnownExecutions {
  readonly #all = new Map<string, Known>();

  get(execId: string): Known | undefined {
    return this.#all.get(execId);
  }

  /** Null when it is known already. */
  add(execId: string, what: Omit<Known, "ended">): Known | null {
    if (this.#all.has(execId)) return null;
    const known = { ...what, ended: Promise.withResolvers<void>() };
    this.#all.set(execId, known);
    if (this.#all.size > MOST_KNOWN) {
      const [oldest] = [...this.#all].find(([, { attended }]) => !attended) ?? [];
      if (oldest !== undefined) this.forget(oldest);
    }
    return known;
  }

  forget(execId: string): void {
    this.#all.get(execId)?.ended.resolve();
    this.#all.delete(execId);
  }

  forgetAll(): void {
    for (const execId of [...this.#all.keys()]) this.forget(execId);
  }
}
