/**
 * Registry of this guest's executions: lists them, starts each at most once, and bounds how long they are stored.
 *
 * Ended executions are retained for a time (finished-executions.ts). The names of forgotten ones stay, so that a late retry with the same name does not
 * run the command again.
 */
import { KEPT_NAMES } from "../../shared/agent-protocol/kept-output.ts";
import { type ExecRequest, type ExecState, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { type ExecDeps, Execution, StartError } from "./execution.ts";
import { FinishedExecutions } from "./finished-executions.ts";
import { Names } from "./names.ts";

/** The limit that the API documents per sandbox. */
const MAX_LIVE = 64;
/** Generated names, which no client repeats: enough to tell forgotten executions from ones that never existed. */
const MAX_GENERATED_NAMES = 4096;
/** Ends are batched for this long. */
const GATHER_MS = 1_000;
/** Fits into the largest frame of a guest, even with worst-case JSON escaping. */
const MAX_LIST_BYTES = 32 * 1024;

/** Identity of an execution, by which a repeated request is recognized. */
export interface Naming {
  fingerprint: string;
  tag: string;
  isGenerated: boolean;
  isBrief: boolean;
}

export class Executions {
  readonly #deps: ExecDeps;
  readonly #all = new Map<string, Execution>();
  readonly #kept = new FinishedExecutions((execution) => this.#retire(execution));
  readonly #unsettled = new Set<Execution>();
  readonly #forgotten = { chosen: new Names(KEPT_NAMES), generated: new Names(MAX_GENERATED_NAMES) };
  #live = 0;
  #count = 0;
  #change = Promise.withResolvers<void>();

  constructor(deps: ExecDeps) {
    this.#deps = deps;
  }

  /** Starts it, or finds the execution that the same request has started. Resolves once there is a command. Throws StartError. */
  async start(request: ExecRequest, naming: Naming) {
    const known = this.#all.get(request.exec_id);
    if (known && known.fingerprint !== naming.fingerprint) {
      throw new StartError(StreamErrorCode.exec_id_in_use, `exec_id ${request.exec_id} belongs to another command`);
    }
    if (!known && this.#hasBeen(request.exec_id)) {
      throw new StartError(StreamErrorCode.history_gone, `${request.exec_id} has run and is no longer kept`);
    }
    const execution = known ?? this.begin(request, naming);
    await execution.started;
    return { execution, existing: known !== undefined };
  }

  /** Starts it. Throws StartError if too many are running. */
  begin(request: ExecRequest, naming: Naming): Execution {
    if (this.#live >= MAX_LIVE) {
      throw new StartError(StreamErrorCode.too_many_executions, `${MAX_LIVE} commands are running`);
    }
    this.#live++;
    this.#count++;
    const execution = new Execution(this.#deps, request, { number: this.#count, ...naming });
    this.#all.set(request.exec_id, execution);
    execution.ended.then(
      () => this.#keep(execution),
      () => this.#drop(execution),
    );
    return execution;
  }

  /** Throws StartError. */
  get(execId: unknown): Execution {
    const execution = this.#all.get(String(execId));
    if (execution) return execution;
    const code = this.#hasBeen(String(execId)) ? StreamErrorCode.history_gone : StreamErrorCode.execution_not_found;
    throw new StartError(code, `no execution ${execId}`);
  }

  list(after: number, limit: number): ExecState[] {
    return fitting([...this.#all.values()].filter(({ number }) => number > after).slice(0, limit));
  }

  /** Waits until there are ended executions that are not settled, and returns them. `signal` ends the wait. */
  async ended(settled: readonly string[], signal: Promise<unknown>): Promise<ExecState[]> {
    for (const execId of settled) {
      const execution = this.#all.get(execId);
      if (execution) this.#unsettled.delete(execution);
    }
    let hasLeft = false;
    const over = signal.then(
      () => {
        hasLeft = true;
      },
      () => {
        hasLeft = true;
      },
    );
    while (this.#unsettled.size === 0 && !hasLeft) await Promise.race([this.#change.promise, over]);
    await Promise.race([Bun.sleep(GATHER_MS), over]);
    return fitting([...this.#unsettled]);
  }

  /** Removes the execution with its output, as if it had never been started. */
  forget(execution: Execution): void {
    this.#all.delete(execution.exec_id);
    this.#kept.remove(execution);
    this.#unsettled.delete(execution);
    execution.journal.forget();
  }

  /** For a frozen template: removes names, timers, and everything else of the warm-up commands. */
  forgetAll(): void {
    for (const execution of [...this.#all.values()]) this.forget(execution);
    for (const names of Object.values(this.#forgotten)) names.clear();
    this.#count = 0;
  }

  #keep(execution: Execution): void {
    this.#live--;
    // An execution of the method `exec` may be forgotten already.
    if (this.#all.get(execution.exec_id) !== execution) return;
    this.#unsettled.add(execution);
    this.#change.resolve();
    this.#change = Promise.withResolvers<void>();
    this.#kept.add(execution);
  }

  #drop(execution: Execution): void {
    this.#live--;
    this.forget(execution);
  }

  #retire(execution: Execution): void {
    this.forget(execution);
    this.#forgotten[execution.isGenerated ? "generated" : "chosen"].add(execution.exec_id);
  }

  #hasBeen(execId: string): boolean {
    return this.#forgotten.chosen.has(execId) || this.#forgotten.generated.has(execId);
  }
}

function fitting(executions: readonly Execution[]): ExecState[] {
  const states: ExecState[] = [];
  let left = MAX_LIST_BYTES;
  for (const { state } of executions) {
    left -= Buffer.byteLength(JSON.stringify(state));
    if (left < 0 && states.length > 0) break;
    states.push(state);
  }
  return states;
}
