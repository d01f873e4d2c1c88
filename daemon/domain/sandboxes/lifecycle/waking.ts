/**
 * Wakes sandboxes in standby or hibernation: for a call that uses one, a request to its port, or a message to its agent, according to
 * `wake_on` in its row. Callers that need it wait until it runs, or get the error; a message's sender never waits.
 *
 *     pausing or hibernating ──▶ at rest ──single-flight resume, for all waiting callers──▶ running
 */
import type { SandboxState, WakeReason } from "../../../../shared/api/sandboxes.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { monotonicMs, wallMs } from "../../../core/clock.ts";
import { DeadlineError, within } from "../../../core/concurrency/published.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { TerminalTarget } from "../../terminals/deps.ts";
import { resumeSupervised } from "../calls/resume.ts";
import type { SandboxDeps } from "../deps.ts";
import { STALLED_REASON } from "../health.ts";
import { wokenByMessages } from "../store.ts";
import type { SandboxRow } from "../table.ts";
import { Gate } from "./admission.ts";
import { requireState } from "./state.ts";
import type { Supervisor } from "./supervisor.ts";
import type { Supervisors } from "./supervisors.ts";

const RESTS: readonly SandboxState[] = ["paused", "hibernated"];
const WAKEABLE: readonly SandboxState[] = [...RESTS, "pausing", "hibernating", "resuming"];

const TIMES_MS = {
  /** Timeout of callers for a sandbox in standby, or in transition to it. */
  standby: 30_000,
  /** Longer than a start may take, so that its error is reported instead of a timeout. */
  margin: 5_000,
  /** Retry delays after a message failed to wake it, the last one repeated: a host may have memory later. */
  again: [5_000, 15_000, 60_000],
};
const MAX_TRIES = 60;
/** Number of failures that are logged and recorded; the last one is too. */
const MAX_TOLD = 3;

export class Waking {
  readonly #deps: SandboxDeps;
  readonly #supervisors: Supervisors;
  readonly #timesMs: typeof TIMES_MS;
  /** Resumes in progress, by sandbox. */
  readonly #resumes = new Map<string, Promise<void>>();
  /** Sandboxes with a wake-up by a message in progress, or waiting for its retry. */
  readonly #called = new Set<string>();
  /** Limit of concurrent wake-ups, since a broadcast wakes all sandboxes of a room; each timeout starts with its turn. */
  readonly #gate: Gate;
  readonly #stopping = new AbortController();

  constructor(deps: SandboxDeps, supervisors: Supervisors, timesMs = TIMES_MS) {
    this.#timesMs = timesMs;
    this.#deps = deps;
    this.#supervisors = supervisors;
    this.#gate = new Gate(deps.limits.concurrent_creates);
  }

  /**
   * For a call that needs the running guest; observation wakes nothing. Throws room_destroying, invalid_state, disk_full, and errors of
   * `wake`.
   */
  async requireAwake(target: TerminalTarget, reason: WakeReason = "api"): Promise<void> {
    requireActive(target.room);
    const woken = target.isLookedAt ? null : await this.wake(target.row.sandbox_id, reason);
    const row = woken ?? target.row;
    requireState(row, ["running"]);
    if (row.status_reason === STALLED_REASON) throw new ServiceError("disk_full", { detail: row.status_message });
  }

  /**
   * Resolves with its row once it runs; with null if `reason` does not wake it, or it needs no waking. Throws guest_unreachable on timeout,
   * invalid_state if it has ended, and errors of its resume.
   */
  async wake(sandboxId: string, reason: WakeReason): Promise<SandboxRow | null> {
    const supervisor = this.#supervisors.get(sandboxId);
    if (!supervisor) return null;
    // In use from now on: an idle sandbox no longer goes to rest, or its transition is visible here.
    return await this.#supervisors.use(sandboxId, async () => {
      await supervisor.settled();
      return isWokenBy(supervisor.row, reason) ? await this.#untilRunning(supervisor, reason) : null;
    });
  }

  /** A message is in its agent's inbox: wakes it from rest, or else keeps it awake. Never throws. */
  message(sandboxId: string): void {
    const supervisor = this.#supervisors.get(sandboxId);
    if (!supervisor || !hearsMessages(supervisor.row) || this.#called.has(sandboxId)) return;
    // A restore of the room to a checkpoint replaces its messages, and fails while a sandbox resumes.
    if (this.#deps.currentRoom(supervisor.row.room_uid).is_turning) return;
    this.#called.add(sandboxId);
    void this.#call(supervisor).finally(() => this.#called.delete(sandboxId));
  }

  /** Wakes sandboxes for messages that did not wake them under the previous daemon. */
  recover(): void {
    try {
      for (const sandboxId of wokenByMessages(this.#deps.database.queries)) this.message(sandboxId);
    } catch (error) {
      this.#deps.log.error("failed to find messages that wake sandboxes", { error: describeError(error) });
    }
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #untilRunning(supervisor: Supervisor, reason: WakeReason): Promise<SandboxRow> {
    const limitMs = this.#limitOf(supervisor.row.state);
    const end = monotonicMs() + limitMs;
    const left = () => Math.max(0, end - monotonicMs());
    try {
      for (;;) {
        const { row } = supervisor;
        if (row.state === "running") return row;
        if (RESTS.includes(row.state)) await within(this.#resumed(supervisor, reason), left(), "the resume");
        else if (!WAKEABLE.includes(row.state)) requireState(row, ["running"]);
        else await supervisor.published.until(({ state }) => state !== row.state, left());
      }
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      throw new ServiceError("guest_unreachable", {
        detail: `The sandbox is ${supervisor.row.state}, and was not running within ${limitMs / 1000} s.`,
        cause: error,
      });
    }
  }

  #limitOf(state: SandboxState): number {
    const { standby, margin } = this.#timesMs;
    if (state === "pausing" || state === "paused") return standby;
    const startMs = this.#deps.startLimitMs + margin;
    return state === "hibernating" ? 2 * startMs : startMs;
  }

  /** Starts a resume, or joins the one in progress. */
  #resumed(supervisor: Supervisor, reason: WakeReason): Promise<void> {
    const { sandbox_id } = supervisor.row;
    const known = this.#resumes.get(sandbox_id);
    if (known) return known;
    const resumed = this.#resume(supervisor, reason).finally(() => this.#resumes.delete(sandbox_id));
    this.#resumes.set(sandbox_id, resumed);
    return resumed;
  }

  async #resume(supervisor: Supervisor, reason: WakeReason): Promise<void> {
    const { state, org_id, last_transition_at } = supervisor.row;
    const { quota, onEvent } = this.#deps;
    await faultPoint("sandbox.waking");
    try {
      await resumeSupervised(this.#deps, this.#supervisors, supervisor, {
        reason,
        requireQuota: (queries, added) => quota.require(queries, org_id, added),
      });
    } catch (error) {
      const isRefused = error instanceof ServiceError && error.code === "invalid_state";
      // A call resumed it in the meantime.
      if (isRefused && !RESTS.includes(supervisor.row.state)) return;
      throw error;
    }
    const paused_seconds = Math.round(Math.max(0, wallMs() - Date.parse(last_transition_at)) / 1000);
    onEvent("sandbox.resume", supervisor.row, { reason, paused_seconds, from: state }, "success");
  }

  /** Retries failures for a while, until something else wakes it. */
  async #call(supervisor: Supervisor): Promise<void> {
    const { sandbox_id, org_id } = supervisor.row;
    const { signal } = this.#stopping;
    for (let tries = 1; ; tries++) {
      try {
        await supervisor.settled();
        const wake = () => this.wake(sandbox_id, "message");
        // A running sandbox need not queue.
        await (supervisor.row.state === "running" ? wake() : this.#gate.through(org_id, wake, signal));
        return;
      } catch (error) {
        const { row } = supervisor;
        if (signal.aborted || !isWokenBy(row, "message")) return;
        if (tries <= MAX_TOLD || tries === MAX_TRIES) this.#tellUnwoken(row, error);
      }
      if (tries === MAX_TRIES) return;
      const { again } = this.#timesMs;
      const pauseMs = again[tries - 1] ?? again.at(-1) ?? 0;
      const others = supervisor.published.until(({ state }) => !WAKEABLE.includes(state), pauseMs, signal);
      const isOver = await others.then(
        () => true,
        () => signal.aborted,
      );
      if (isOver) return;
    }
  }

  #tellUnwoken(row: SandboxRow, error: unknown): void {
    const { sandbox_id } = row;
    const error_code = error instanceof ServiceError ? error.code : "internal";
    this.#deps.log.warn("failed to wake a sandbox for a message", { sandbox_id, error: describeError(error) });
    this.#deps.onEvent("sandbox.resume", row, { reason: "message", error_code }, "error");
  }
}

function isWokenBy({ state, wake_on }: SandboxRow, reason: WakeReason): boolean {
  return WAKEABLE.includes(state) && wake_on.includes(reason);
}

/** Whether the sandbox's agent receives messages, and they wake it. */
function hearsMessages({ fabric_attached, wake_on }: SandboxRow): boolean {
  return fabric_attached && wake_on.includes("message");
}
