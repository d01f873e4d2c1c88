/**
 * Owns how one sandbox ends: what it had is ended and freed, and its row says so. What does not end keeps its CID, and is
 * tried again by the reconciler.
 */
import type { ExitCause } from "../../../shared/api/sandboxes.ts";
import { now } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { SandboxPaths } from "../../core/paths.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import { endProcesses } from "../../host/guest/remains.ts";
import type { Guest } from "../../host/guest/start.ts";
import type { PublishedRow } from "./published-row.ts";
import { actsIn } from "./state.ts";
import type { SandboxRow } from "./table.ts";

const NOT_ENDED = " One of its processes does not end. Its guest_cid stays in use until then.";

export interface EndingDeps {
  log: Log;
  paths: SandboxPaths;
  /** Ends and removes whatever is on the host by the sandbox's name, but its logs. Throws when something is left. */
  freeRemains(): Promise<void>;
  /** The same, but its disk and what was saved of it. */
  endLeft(): Promise<void>;
  /** Hears of what nobody asked for: an end, an expiry. */
  onEvent(event: string, row: SandboxRow, details: Record<string, unknown>, outcome?: "success" | "error"): void;
}

export class Ending {
  #guest: Guest | null = null;
  #begun = new AbortController();
  readonly #row: PublishedRow;
  readonly #deps: EndingDeps;

  constructor(row: PublishedRow, deps: EndingDeps) {
    this.#row = row;
    this.#deps = deps;
  }

  /** What there is to end; null before it has started, after it has ended, and while it hibernates. */
  get guest(): Guest | null {
    return this.#guest;
  }

  /** There is a guest. The signal is aborted when it is being ended: nobody need watch it any more. */
  take(guest: Guest): AbortSignal {
    this.#guest = guest;
    this.#begun = new AbortController();
    return this.#begun.signal;
  }

  /** The guest was saved and stands still: ends it, and keeps what was saved. What does not end now is tried again by the reconciler. */
  async leave(): Promise<void> {
    this.#begun.abort();
    const guest = this.#guest;
    this.#guest = null;
    await (guest?.leave() ?? Promise.resolve()).catch(() => this.#deps.endLeft());
  }

  /** What is left of it is freed first: whoever hears of its failure can use its CID again. Nothing when it has ended. */
  async lose(cause: ExitCause, reason: string, message: string, change: Partial<SandboxRow> = {}): Promise<void> {
    if (!actsIn("fail", this.#row.row.state)) return;
    const freed = await this.#freed();
    const said = freed ? message : message + NOT_ENDED;
    // A hibernated sandbox has no CID.
    const cid_held = this.#row.row.cid_held && !freed;
    await this.#failed(cause, reason, said, { ...change, stopped_at: now(), cid_held });
  }

  /** A guest that has ended, or is of no use any more: its failure is said at once, and then it is freed. */
  async failNow(guest: Guest, cause: ExitCause, message: string): Promise<void> {
    if (this.#guest !== guest) return;
    if (await this.#failed(cause, cause, message, {})) await this.free({ stopped_at: now() });
  }

  /** Whether it has failed by this, and not been ended otherwise before. */
  async #failed(cause: ExitCause, reason: string, message: string, change: Partial<SandboxRow>): Promise<boolean> {
    const ended = { ...change, exit_cause: cause, exit_at: now() };
    if (!(await this.#row.becomeUnlessPast("fail", "failed", reason, message, ended))) return false;
    this.#deps.onEvent("sandbox.failed", this.#row.row, { reason, message: this.#row.row.status_message });
    return true;
  }

  /** Its CID is free once nothing is left of it; what does not end is tried again by the reconciler. */
  async free(change: Partial<SandboxRow>): Promise<void> {
    const freed = await this.#freed();
    await this.#row.write(() => {
      // One that is free stays so: it may be another's by now.
      const { status_message: said, cid_held: held } = this.#row.row;
      const status_message = freed || !held || said.endsWith(NOT_ENDED) ? said : said + NOT_ENDED;
      return { ...change, status_message, cid_held: held && !freed };
    });
  }

  /** Throws not_ready when something of it does not end now. */
  async endOrSay(): Promise<void> {
    try {
      await this.#endGuest();
    } catch (cause) {
      const detail = `The sandbox has not ended yet.${NOT_ENDED}`;
      await this.#row.write(() => ({ status_reason: "not_ended", status_message: detail }));
      throw new ServiceError("not_ready", { detail, retryAfterSeconds: 10, cause });
    }
  }

  /** What does not end now is tried again when it is freed. */
  async endProcesses(): Promise<void> {
    await endProcesses(this.#deps.paths).catch((error: unknown) =>
      this.#deps.log.warn("processes not ended", { sandbox_id: this.#row.row.sandbox_id, error: describeError(error) }),
    );
  }

  async #freed(): Promise<boolean> {
    try {
      await this.#endGuest();
      return true;
    } catch (error) {
      this.#deps.log.error("sandbox not freed", { sandbox_id: this.#row.row.sandbox_id, error: describeError(error) });
      return false;
    }
  }

  /** Ends the guest, by what is known of it or else by its names. Throws when something of it is left. */
  async #endGuest(): Promise<void> {
    this.#begun.abort();
    const guest = this.#guest;
    // What its steps cannot undo is perhaps gone by its names.
    if (guest) await guest.end().catch(() => this.#deps.freeRemains());
    else await this.#deps.freeRemains();
    this.#guest = null;
  }
}
