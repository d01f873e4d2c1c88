/**
 * Teardown of one sandbox: ends its processes, frees its resources and updates its row. If a process does not end, the sandbox keeps its
 * CID, and the reconciler retries.
 */
import type { ExitCause } from "../../../../shared/api/sandboxes.ts";
import { now } from "../../../core/clock.ts";
import type { SandboxPaths } from "../../../core/config/paths.ts";
import type { Log } from "../../../core/log.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { endProcesses } from "../../../host/guest/leftovers.ts";
import type { Guest } from "../../../host/guest/start.ts";
import type { SandboxRow } from "../table.ts";
import type { PublishedRow } from "./published-row.ts";
import { actsIn } from "./state.ts";

const NOT_ENDED = " One of its processes does not end. Its guest_cid stays in use until then.";

export interface TeardownDeps {
  log: Log;
  paths: SandboxPaths;
  /** Ends and removes everything on the host under the sandbox's name, except its logs. Throws if anything remains. */
  freeRemains(): Promise<void>;
  /** The same, except its disk and its saved state. */
  endLeft(): Promise<void>;
  /** Called for events that no call caused: an end, an expiry. */
  onEvent(event: string, row: SandboxRow, details: Record<string, unknown>, outcome?: "success" | "error"): void;
}

export class Teardown {
  #guest: Guest | null = null;
  #begun = new AbortController();
  readonly #row: PublishedRow;
  readonly #deps: TeardownDeps;

  constructor(row: PublishedRow, deps: TeardownDeps) {
    this.#row = row;
    this.#deps = deps;
  }

  /** The guest to end; null before it has started, after it has ended, and while it hibernates. */
  get guest(): Guest | null {
    return this.#guest;
  }

  /** Sets the guest. The returned signal is aborted when the guest is being ended: watchers stop then. */
  take(guest: Guest): AbortSignal {
    this.#guest = guest;
    this.#begun = new AbortController();
    return this.#begun.signal;
  }

  /** Ends a saved, paused guest, and keeps its saved state. The reconciler retries if a process does not end. */
  async leave(): Promise<void> {
    this.#begun.abort();
    const guest = this.#guest;
    this.#guest = null;
    await (guest?.leave() ?? Promise.resolve()).catch(() => this.#deps.endLeft());
  }

  /** Frees the resources first, so that the CID is reusable when the failure is published. Does nothing if it has ended. */
  async lose(cause: ExitCause, reason: string, message: string, change: Partial<SandboxRow> = {}): Promise<void> {
    if (!actsIn("fail", this.#row.row.state)) return;
    const freed = await this.#freed();
    const fullMessage = freed ? message : message + NOT_ENDED;
    // A hibernated sandbox has no CID.
    const cid_held = this.#row.row.cid_held && !freed;
    await this.#failed(cause, reason, fullMessage, { ...change, stopped_at: now(), cid_held });
  }

  /** For a guest that has ended or is unusable: publishes its failure immediately, then frees its resources. */
  async failNow(guest: Guest, cause: ExitCause, message: string): Promise<void> {
    if (this.#guest !== guest) return;
    if (await this.#failed(cause, cause, message, {})) await this.free({ stopped_at: now() });
  }

  /** Returns whether this call made it fail; false if it had ended before. */
  async #failed(cause: ExitCause, reason: string, message: string, change: Partial<SandboxRow>): Promise<boolean> {
    const ended = { ...change, exit_cause: cause, exit_at: now() };
    if (!(await this.#row.becomeUnlessPast("fail", "failed", reason, message, ended))) return false;
    this.#deps.onEvent("sandbox.failed", this.#row.row, { reason, message: this.#row.row.status_message });
    return true;
  }

  /** Frees its CID once nothing of it remains; the reconciler retries if a process does not end. */
  async free(change: Partial<SandboxRow>): Promise<void> {
    const freed = await this.#freed();
    await this.#row.write(() => {
      // A released CID stays released: it may belong to another sandbox by now.
      const { status_message: previous, cid_held: held } = this.#row.row;
      const status_message = freed || !held || previous.endsWith(NOT_ENDED) ? previous : previous + NOT_ENDED;
      return { ...change, status_message, cid_held: held && !freed };
    });
  }

  /** Throws not_ready if a part of the guest does not end now. */
  async endOrSay(): Promise<void> {
    try {
      await this.#endGuest();
    } catch (cause) {
      const detail = `The sandbox has not ended yet.${NOT_ENDED}`;
      await this.#row.write(() => ({ status_reason: "not_ended", status_message: detail }));
      throw new ServiceError("not_ready", { detail, retryAfterSeconds: 10, cause });
    }
  }

  /** Processes that do not end now are retried by `free`. */
  async endProcesses(): Promise<void> {
    await endProcesses(this.#deps.paths).catch((error: unknown) =>
      this.#deps.log.warn("failed to end processes", {
        sandbox_id: this.#row.row.sandbox_id,
        error: describeError(error),
      }),
    );
  }

  async #freed(): Promise<boolean> {
    try {
      await this.#endGuest();
      return true;
    } catch (error) {
      this.#deps.log.error("failed to free a sandbox", {
        sandbox_id: this.#row.row.sandbox_id,
        error: describeError(error),
      });
      return false;
    }
  }

  /** Ends the guest, by its known parts or else by its names. Throws if anything of it remains. */
  async #endGuest(): Promise<void> {
    this.#begun.abort();
    const guest = this.#guest;
    // If undoing its steps fails, removal by its names may succeed.
    if (guest) await guest.end().catch(() => this.#deps.freeRemains());
    else await this.#deps.freeRemains();
    this.#guest = null;
  }
}
