/**
 * The published row of one sandbox: every change is committed before it is published, one after another.
 * Whether a state change is still allowed is decided when it is written, so a late change cannot undo another.
 */
import type { SandboxState } from "../../../../shared/api/sandboxes.ts";
import { monotonicMs, now } from "../../../core/clock.ts";
import { Mailbox } from "../../../core/concurrency/mailbox.ts";
import { Published } from "../../../core/concurrency/published.ts";
import type { Log } from "../../../core/log.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import type { Meter } from "../../orgs/index.ts";
import { meterState } from "../metering.ts";
import { updateSandbox } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { mayTake, sourcesOf, type VerbName } from "./state.ts";

export interface RowDeps {
  database: Database;
  log: Log;
  meter: Meter;
  /** A guest CID for a sandbox that released its own during hibernation. Throws insufficient_capacity. */
  takeCid(queries: Queries, row: SandboxRow): number;
  /** Called after a change of the sandbox's state. */
  onState(row: SandboxRow): void;
}

export class PublishedRow {
  readonly published: Published<SandboxRow>;
  readonly #deps: RowDeps;
  readonly #changes = new Mailbox();
  #since = monotonicMs();

  constructor(row: SandboxRow, deps: RowDeps) {
    this.published = new Published(row);
    this.#deps = deps;
  }

  get row(): SandboxRow {
    return this.published.value;
  }

  /** When it entered its state, by the monotonic clock; time before this process does not count. */
  get since(): number {
    return this.#since;
  }

  /** Whether it became so. */
  async becomeUnlessPast(
    verb: VerbName,
    state: SandboxState,
    reason: string,
    message: string,
    change: Partial<SandboxRow>,
  ): Promise<boolean> {
    try {
      await this.become(verb, state, reason, message, change);
      return true;
    } catch (error) {
      if (error instanceof PastError) return false;
      throw error;
    }
  }

  /** For the supervisor's verbs only. Throws PastError if a faster operation has already moved the sandbox past this transition. */
  async become(
    verb: VerbName,
    state: SandboxState,
    reason: string,
    message: string,
    change: Partial<SandboxRow> = {},
    admit?: (queries: Queries) => void,
  ): Promise<void> {
    const becomes = () => {
      if (!mayTake(verb, this.row.state, state)) throw new PastError(this.row, verb, state);
      return {
        ...change,
        state,
        status_reason: reason,
        status_message: message.slice(0, 1000),
        last_transition_at: now(),
      };
    };
    await this.write(becomes, admit);
    this.#deps.log.info("sandbox state", { sandbox_id: this.row.sandbox_id, state, reason });
    this.#deps.onState(this.row);
  }

  /** The guest of the previous daemon still exists, in the row's state: the time since the last metering counts. */
  found(): Promise<void> {
    return this.#changes.put(() =>
      this.#deps.database.commit((queries) => meterState(this.#deps.meter, queries, this.row, this.row.state)),
    );
  }

  /** Null unless a change is being written; otherwise resolves once the change is published or has failed. */
  settled(): Promise<void> | null {
    return this.#changes.busy ? this.#changes.put(async () => {}) : null;
  }

  /**
   * Writes the change that `changeOf` returns in its turn; nothing is written if it is empty, or if `admit` throws. `admit` sees the change
   * within the transaction.
   */
  write(changeOf: () => Partial<SandboxRow>, admit?: (queries: Queries) => void): Promise<SandboxRow> {
    return this.#changes.put(async () => {
      const change = changeOf();
      if (Object.keys(change).length === 0) return this.row;
      await this.#deps.database.commit((queries) => {
        Object.assign(change, this.#cidIn(change, queries));
        updateSandbox(queries, this.row.sandbox_id, change);
        if (change.state !== undefined) meterState(this.#deps.meter, queries, this.row, change.state);
        admit?.(queries);
      });
      if (change.state !== undefined) this.#since = monotonicMs();
      this.published.set({ ...this.row, ...change });
      return this.row;
    });
  }

  /** A hibernated sandbox has no CID: until it is resumed, another may use its former one. */
  #cidIn({ state }: Partial<SandboxRow>, queries: Queries): Partial<SandboxRow> {
    if (state === "hibernated") return { cid_held: false };
    if (state !== "resuming" || this.row.cid_held) return {};
    return { guest_cid: this.#deps.takeCid(queries, this.row), cid_held: true };
  }
}

/** Another change was faster: usually the destruction of the sandbox. */
class PastError extends ServiceError {
  constructor({ agent_id, state }: SandboxRow, verb: VerbName, targetState: SandboxState) {
    const details = { state, allowed_states: sourcesOf(verb, targetState) };
    super("invalid_state", {
      detail: `Sandbox ${agent_id} is ${state} and can no longer become ${targetState}.`,
      details,
    });
  }
}
