/**
 * Idle detection and the idle action: a sandbox ends or rests, as its row specifies. If it cannot rest, it keeps running, its record has
 * the reason, and the action is retried after another idle time.
 *
 *     last use ──▶ sampled a minute before the idle time is over ──▶ due: idle, unless traffic or a busy execution since
 */
import { doubled } from "../../../../shared/backoff.ts";
import { monotonicMs } from "../../../core/clock.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import type { Log } from "../../../core/log.ts";
import { describeError } from "../../../core/service-error.ts";
import { IDLE_MESSAGES } from "../health.ts";
import type { SandboxRow } from "../table.ts";
import type { Supervisor } from "./supervisor.ts";

/** `status.reason` of a sandbox that rests because it was idle. */
const IDLE = "idle";
const EVENTS = { standby: "sandbox.standby", hibernate: "sandbox.hibernated" } as const;
/** Number of consecutive failures that are logged and recorded. */
const MAX_TOLD = 3;
/** Longest interval of the backoff after repeated failures. */
const LONGEST_PAUSE_SECONDS = 3600;
/** An execution that no client follows keeps its sandbox awake only while busy: at least this share of a CPU over this time. */
const BUSY_SHARE = 0.01;
const BUSY_SECONDS = 60;
/** A message that its agent has neither acked nor read past keeps it awake for this long: the agent may be about to read it. */
const UNREAD_SECONDS = 60;
/** Interval of checks whether such a message is still present. */
const CALLED_AGAIN_MS = 1000;

export interface IdlenessDeps {
  log: Log;
  onEvent(event: string, row: SandboxRow, details: Record<string, unknown>, outcome: "success" | "error"): void;
  supervisorOf(sandboxId: string): Pick<Supervisor, "row" | "standby" | "hibernate"> | undefined;
  /** Whether a message that wakes the sandbox is in its agent's inbox. */
  isCalled(row: SandboxRow): boolean;
  activityOf(sandboxId: string): Activity;
  /** Destroys an idle sandbox. Never rejects. */
  end(sandboxId: string): Promise<void>;
}

/** Activity of a sandbox that no call uses. */
export interface Activity {
  /** Monotonic time of the last traffic to or from outside; null if none is known. */
  traffic_at: number | null;
  /** CPU time of its virtual machine while an execution runs in it; null without an execution, or if the time is unknown. */
  cpu_seconds: number | null;
}

export class Idleness {
  readonly #deps: IdlenessDeps;
  /** Number of current uses of each sandbox. */
  readonly #uses = new Map<string, number>();
  /** Idle sandboxes with an idle action in progress. */
  readonly #due = new Set<string>();
  /** Start of idleness of sandboxes that a message keeps awake. */
  readonly #called = new Map<string, number>();
  /** Consecutive failures of each sandbox's idle action. */
  readonly #failures = new Map<string, number>();
  /** CPU time of each sandbox near its idle timeout. */
  readonly #samples = new Map<string, { cpu_seconds: number | null; at: number }>();
  readonly #clocks = new Deadlines((sandboxId) => void this.#clockFired(sandboxId));

  constructor(deps: IdlenessDeps) {
    this.#deps = deps;
  }

  /** Only a running sandbox can be idle: a resting one waits to be resumed, up to its maximum lifetime. */
  restart(sandboxId: string): void {
    this.#due.delete(sandboxId);
    this.#called.delete(sandboxId);
    const seconds = this.#secondsOf(sandboxId);
    this.#set(sandboxId, seconds === null ? null : this.#pauseOf(sandboxId, seconds) * 1000);
  }

  /** Makes it idle after `idleMs`, with a sample before. */
  #set(sandboxId: string, idleMs: number | null): void {
    this.#samples.delete(sandboxId);
    const seconds = this.#secondsOf(sandboxId) ?? 0;
    const windowMs = Math.min(BUSY_SECONDS, seconds) * 1000;
    if (idleMs === null) this.#clocks.set(sandboxId, null);
    else this.#clocks.setIn(sandboxId, idleMs - windowMs);
  }

  /** Runs `work` with the sandbox, which is not idle until it is done, however long it takes. */
  async use<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    this.#uses.set(sandboxId, (this.#uses.get(sandboxId) ?? 0) + 1);
    this.restart(sandboxId);
    try {
      return await work();
    } finally {
      const left = (this.#uses.get(sandboxId) ?? 1) - 1;
      if (left === 0) this.#uses.delete(sandboxId);
      else this.#uses.set(sandboxId, left);
      this.restart(sandboxId);
    }
  }

  /** Number of current uses of the sandbox. */
  usesOf(sandboxId: string): number {
    return this.#uses.get(sandboxId) ?? 0;
  }

  /** It is no more. */
  forget(sandboxId: string): void {
    this.#clocks.set(sandboxId, null);
    this.#due.delete(sandboxId);
    this.#called.delete(sandboxId);
    this.#failures.delete(sandboxId);
    this.#samples.delete(sandboxId);
  }

  stop(): void {
    this.#clocks.clear();
  }

  #pauseOf(sandboxId: string, seconds: number): number {
    const failures = this.#failures.get(sandboxId) ?? 0;
    return doubled({ first: seconds, most: Math.max(seconds, LONGEST_PAUSE_SECONDS) }, Math.max(0, failures - 1));
  }

  /** The idle timeout of a sandbox that can currently be idle. */
  #secondsOf(sandboxId: string): number | null {
    const row = this.#deps.supervisorOf(sandboxId)?.row;
    return row?.state === "running" && !this.#uses.has(sandboxId) ? row.idle_timeout_seconds : null;
  }

  #clockFired(sandboxId: string): void {
    const seconds = this.#secondsOf(sandboxId);
    if (seconds === null) return;
    const sample = this.#samples.get(sandboxId);
    const { traffic_at, cpu_seconds } = this.#deps.activityOf(sandboxId);
    if (!sample) {
      this.#samples.set(sandboxId, { cpu_seconds, at: monotonicMs() });
      const windowMs = Math.min(BUSY_SECONDS, seconds) * 1000;
      this.#clocks.setIn(sandboxId, windowMs);
      return;
    }
    const idleMs = seconds * 1000;
    const quietMs = traffic_at === null ? idleMs : monotonicMs() - traffic_at;
    if (quietMs < idleMs) this.#set(sandboxId, idleMs - quietMs);
    else if (isBusy(sample, cpu_seconds)) this.#set(sandboxId, idleMs);
    else void this.#idle(sandboxId);
  }

  #isCalled(row: SandboxRow): boolean {
    const { sandbox_id } = row;
    const since = this.#called.get(sandbox_id) ?? monotonicMs();
    if (monotonicMs() - since > UNREAD_SECONDS * 1000 || !this.#deps.isCalled(row)) return false;
    this.#called.set(sandbox_id, since);
    return true;
  }

  async #idle(sandboxId: string): Promise<void> {
    const supervisor = this.#deps.supervisorOf(sandboxId);
    if (!supervisor) return;
    const { on_idle } = supervisor.row;
    if (on_idle === "destroy") return await this.#deps.end(sandboxId);
    if (this.#isCalled(supervisor.row)) return this.#clocks.setIn(sandboxId, CALLED_AGAIN_MS);
    this.#due.add(sandboxId);
    // Any use before its turn keeps it awake.
    const isIdle = () => this.#due.has(sandboxId);
    try {
      const { state } = await supervisor[on_idle](IDLE, IDLE_MESSAGES[on_idle], isIdle);
      if (state === "running") return;
      this.#failures.delete(sandboxId);
      this.#deps.onEvent(EVENTS[on_idle], supervisor.row, { reason: IDLE }, "success");
    } catch (error) {
      this.#failed(supervisor.row, on_idle, error);
    } finally {
      this.#due.delete(sandboxId);
    }
  }

  #failed(row: SandboxRow, action: keyof typeof EVENTS, error: unknown): void {
    // Another operation put it to rest or ended it, or it has failed: that is reported separately.
    if (row.state !== "running") return;
    const { sandbox_id } = row;
    const failures = (this.#failures.get(sandbox_id) ?? 0) + 1;
    this.#failures.set(sandbox_id, failures);
    this.restart(sandbox_id);
    if (failures > MAX_TOLD) return;
    this.#deps.log.warn("failed to pause or hibernate an idle sandbox; it keeps running", {
      sandbox_id,
      wanted: action,
      error: describeError(error),
    });
    this.#deps.onEvent(EVENTS[action], row, { reason: IDLE, message: row.status_message }, "error");
  }
}

/** Whether the virtual machine used more than BUSY_SHARE of a CPU since the sample. */
function isBusy(sample: { cpu_seconds: number | null; at: number }, cpuSeconds: number | null): boolean {
  if (sample.cpu_seconds === null || cpuSeconds === null) return false;
  return cpuSeconds - sample.cpu_seconds > ((monotonicMs() - sample.at) / 1000) * BUSY_SHARE;
}
