/**
 * Resumes sandboxes that were saved because their host was shut down (when the daemon starts), or because their room moved to another host
 * (once its owner is known): in parallel, a few at a time.
 * Sandboxes hibernated by a call stay so. A sandbox that cannot be resumed stays on disk, and delays no other.
 */

import { orAfter } from "../../../core/concurrency/published.ts";
import { describeError, ServiceError, saidOf } from "../../../core/service-error.ts";
import type { SandboxDeps } from "../deps.ts";
import { requireDrive } from "../drive-held.ts";
import { RESUMED_REASONS } from "../health.ts";
import { requireUnmoved } from "../move/unmoved.ts";
import type { SandboxRow } from "../table.ts";
import { Gate, makingRoom, requireMemoryAgain } from "./admission.ts";
import type { Supervisor } from "./supervisor.ts";
import type { Supervisors } from "./supervisors.ts";

/** Within systemd's start timeout of the service; late sandboxes continue to be resumed. */
const MAX_MS = 10 * 60_000;
const RESUME_FAILED = "resume_failed";

type Deps = Pick<SandboxDeps, "log" | "pool" | "onEvent" | "driveMode" | "crashed" | "host" | "currentRoom"> & {
  limits: Pick<SandboxDeps["limits"], "concurrent_creates">;
};
type StartSupervisors = Pick<Supervisors, "get" | "use" | "growth">;

export class HostStart {
  readonly #deps: Deps;
  readonly #supervisors: StartSupervisors;
  readonly #gate: Gate;
  readonly #over = new AbortController();
  readonly #underWay = new Map<SandboxRow["sandbox_id"], Promise<void>>();
  #isLate = false;

  constructor(deps: Deps, supervisors: StartSupervisors) {
    this.#deps = deps;
    this.#supervisors = supervisors;
    this.#gate = new Gate(deps.limits.concurrent_creates);
  }

  /** Number of sandboxes that delay the service's readiness. */
  get awaited(): number {
    return this.#isLate ? 0 : this.#underWay.size;
  }

  /** Resumes the eligible ones of `rows`, as the previous daemon left them. Resolves once each has resumed or failed, or after `mostMs`. */
  async resume(rows: readonly SandboxRow[], mostMs = MAX_MS): Promise<void> {
    const meant = rows.filter(isMeant);
    if (meant.length > 0) this.#deps.log.info("resuming saved sandboxes", { sandboxes: meant.length });
    await orAfter(Promise.all(meant.map((row) => this.#begin(row))), mostMs, null);
    this.#isLate = true;
  }

  /** Retries sandboxes for which the host lacked a resource. */
  again(rows: readonly SandboxRow[]): void {
    for (const row of rows) if (isMeant(row) && row.state === "hibernated") void this.#begin(row);
  }

  /** Sandboxes still waiting for a turn stay on disk, for the next daemon. */
  stop(): void {
    this.#over.abort(new Error("the service stops"));
  }

  #begin(row: SandboxRow): Promise<void> {
    const { sandbox_id, org_id } = row;
    const ongoing = this.#underWay.get(sandbox_id);
    if (ongoing || this.#over.signal.aborted) return ongoing ?? Promise.resolve();
    const done = this.#gate
      .through(org_id, () => this.#one(row), this.#over.signal)
      .catch((error: unknown) =>
        this.#deps.log.warn("failed to resume a sandbox", { sandbox_id, error: describeError(error) }),
      )
      .finally(() => this.#underWay.delete(sandbox_id));
    this.#underWay.set(sandbox_id, done);
    return done;
  }

  async #one(before: SandboxRow): Promise<void> {
    const supervisor = this.#supervisors.get(before.sandbox_id);
    if (!supervisor) return;
    await supervisor.adopted();
    const { row } = supervisor;
    const reason = row.status_reason;
    if (row.state !== "hibernated" || !isMeant(row)) return;
    try {
      if (before.state === "resuming" && this.#deps.crashed)
        throw new ServiceError("internal", { detail: "The service crashed while it was restored." });
      await this.#resume(supervisor);
      this.#deps.onEvent("sandbox.resume", supervisor.row, { reason }, "success");
    } catch (error) {
      if (error instanceof LackingError || isMoving(error)) throw error;
      await stay(supervisor, saidOf(error));
      this.#deps.onEvent("sandbox.resume", supervisor.row, { reason, message: saidOf(error) });
      throw error;
    }
  }

  async #resume(supervisor: Supervisor): Promise<void> {
    const { row } = supervisor;
    try {
      this.#deps.host();
    } catch (cause) {
      throw new LackingError(cause);
    }
    requireUnmoved(this.#deps, row);
    requireDrive(this.#deps, row);
    // Its memory is already counted for its organization: only the host's capacity is checked.
    await this.#supervisors.use(row.sandbox_id, () =>
      makingRoom(this.#deps.pool, row.memory_mib, () =>
        supervisor.resume((queries) => requireMemoryAgain(queries, row, this.#supervisors.growth()), row.status_reason),
      ),
    );
  }
}

/** The host currently lacks a resource for guests: retried. */
class LackingError extends ServiceError {
  constructor(cause: unknown) {
    super("not_ready", { detail: saidOf(cause), cause });
  }
}

/** The room is perhaps moving to another host: once the outcome is known, the sandbox is resumed on the room's host. */
const isMoving = (error: unknown) => error instanceof ServiceError && error.code === "room_moving";

/** Whether it was, or was being, saved for the host's shutdown or its room's move, or resumed afterwards. */
function isMeant({ state, status_reason }: Pick<SandboxRow, "state" | "status_reason">): boolean {
  return RESUMED_REASONS.includes(status_reason) && ["hibernating", "hibernated", "resuming"].includes(state);
}

/** A failure during the resume is in its record already; a reason that prevented the attempt is not. */
async function stay(supervisor: Supervisor, why: string): Promise<void> {
  const status_message =
    `The sandbox was not resumed after its host was shut down, or its room had moved: ${why}`.slice(0, 1000);
  await supervisor.changeBy((row) =>
    isMeant(row) && row.state === "hibernated" ? { status_reason: RESUME_FAILED, status_message } : {},
  );
}
