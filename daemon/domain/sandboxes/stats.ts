/** Statistics of this host's sandboxes since the daemon started: starts by mode with their durations, and causes of their ends. */
import {
  EXIT_CAUSES,
  type ExitCause,
  type SandboxState,
  START_MODES,
  type StartMode,
  WAKE_REASONS,
  type WakeReason,
} from "../../../shared/api/sandboxes.ts";
import { monotonicMs } from "../../core/clock.ts";
import { Histogram } from "../../core/histogram.ts";
import type { SandboxRow } from "./table.ts";

/** A start from a pooled machine takes tenths of a second; a cold boot without KVM a minute. */
const BOUNDS_SECONDS = [0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120];
const RESTED = ["paused", "hibernated"] as const;
const RESUME_REASONS = ["resume", ...WAKE_REASONS] as const;

/** A failure at one of these stages is caused by the host, whatever the template; a later failure may be caused by the guest. */
const OF_HOST = ["directories", "disk", "machine", "load", "devices", "plug"].map((stage) => `${stage}_failed`);
/** This many failures in a row are not accidental, for this long. */
const MANY_FAILED = 3;
const FAILING_MS = 10 * 60_000;

/** Why a sandbox is resumed: the call of that name, or a wake reason. */
export type ResumeReason = "resume" | WakeReason;

export class SandboxStats {
  /** Seconds from the call until the guest was on disk. */
  readonly hibernated = new Histogram(BOUNDS_SECONDS);
  /** Seconds from the call or wake event until the sandbox was running again, by its former state. */
  readonly resumed: Record<(typeof RESTED)[number], Histogram> = eachOf(RESTED, () => new Histogram(BOUNDS_SECONDS));
  readonly resumes: Record<ResumeReason, number> = eachOf(RESUME_REASONS, () => 0);
  /** Start time of each hibernation in progress. */
  readonly #saving = new Map<string, number>();
  /** Seconds from the call until the sandbox was running. */
  readonly started: Record<StartMode, Histogram> = eachOf(START_MODES, () => new Histogram(BOUNDS_SECONDS));
  readonly ended: Record<ExitCause, number> = eachOf(EXIT_CAUSES, () => 0);
  /** Number of sandboxes that never ran. */
  notStarted = 0;
  /** Number of consecutive starts that failed for reasons of the host, and the time of the last failure. */
  #failedInARow = 0;
  #failedAt = Number.NEGATIVE_INFINITY;

  /** Whether sandboxes currently fail to start on this host. */
  get areFailing(): boolean {
    return this.#failedInARow >= MANY_FAILED && monotonicMs() - this.#failedAt < FAILING_MS;
  }

  /** Records a new state. Each sandbox ends once: a failed one is destroyed without `destroying`. */
  note({ sandbox_id, state, status_reason, start_mode, create_wall_ms, exit_cause, ready_at }: SandboxRow): void {
    const savingSince = this.#saving.get(sandbox_id);
    this.#saving.delete(sandbox_id);
    if (state === "hibernating") this.#saving.set(sandbox_id, monotonicMs());
    if (state === "hibernated" && savingSince !== undefined) {
      this.hibernated.note((monotonicMs() - savingSince) / 1000);
    }
    if (state === "running" && status_reason === "ready" && start_mode !== null && create_wall_ms !== null) {
      this.started[start_mode].note(create_wall_ms / 1000);
      this.#failedInARow = 0;
    }
    if (state !== "failed" && state !== "destroying") return;
    if (state === "failed" && ready_at === null) {
      this.notStarted++;
      if (OF_HOST.includes(status_reason)) {
        this.#failedInARow++;
        this.#failedAt = monotonicMs();
      }
    }
    if (exit_cause !== null) this.ended[exit_cause]++;
  }

  /** A sandbox in this state runs again. */
  noteResumed(from: SandboxState, reason: ResumeReason, seconds: number): void {
    this.resumes[reason]++;
    if (from === "paused" || from === "hibernated") this.resumed[from].note(seconds);
  }
}

function eachOf<Word extends string, T>(words: readonly Word[], make: () => T): Record<Word, T> {
  return Object.fromEntries(words.map((word) => [word, make()])) as Record<Word, T>;
}
