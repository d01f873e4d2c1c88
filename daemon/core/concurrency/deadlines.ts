/** Deadlines by key, with one timer each: wall-clock timestamps, which may be stored, and durations, unaffected by clock steps. */
import { monotonicMs, startInterval, startTimer, stopTimer, wallMs } from "../clock.ts";

/** Longer timers are not exact, and start again. */
const LONGEST_TIMER_MS = 3_600_000;
/** Interval at which steps of the wall clock are detected; a deadline is at most this late after a step past it. */
const STEP_CHECK_MS = 60_000;
/** Smaller steps are adjustments. */
const MIN_STEP_MS = 1_000;

interface Deadline {
  timer: Timer;
  leftMs(): number;
  isWall: boolean;
}

export class Deadlines {
  readonly #deadlines = new Map<string, Deadline>();
  readonly #onDue: (key: string) => void;
  /** Number of wall-clock deadlines, and the interval that runs while there are some. */
  #wall = 0;
  #stepCheck: Timer | null = null;
  #apart = 0;

  constructor(onDue: (key: string) => void) {
    this.#onDue = onDue;
  }

  /** Sets or moves the deadline of `key` to a wall-clock time; null removes it. */
  set(key: string, moment: string | null): void {
    if (moment === null) {
      this.#stop(key);
      return;
    }
    const due = Date.parse(moment);
    this.#start(key, () => due - wallMs(), true);
  }

  /** Sets or moves the deadline of `key` to `ms` from now. */
  setIn(key: string, ms: number): void {
    const due = monotonicMs() + ms;
    this.#start(key, () => due - monotonicMs(), false);
  }

  clear(): void {
    for (const key of [...this.#deadlines.keys()]) this.#stop(key);
  }

  #start(key: string, leftMs: () => number, isWall: boolean): void {
    this.#stop(key);
    const timer = startTimer(
      () => {
        if (leftMs() > 0) return this.#start(key, leftMs, isWall);
        this.#stop(key);
        this.#onDue(key);
      },
      Math.min(Math.max(0, leftMs()), LONGEST_TIMER_MS),
    );
    this.#deadlines.set(key, { timer: timer.unref(), leftMs, isWall });
    if (isWall) this.#wall++;
    if (this.#stepCheck !== null || this.#wall === 0) return;
    this.#apart = wallMs() - monotonicMs();
    this.#stepCheck = startInterval(() => this.#afterStep(), STEP_CHECK_MS).unref();
  }

  #stop(key: string): void {
    const found = this.#deadlines.get(key);
    if (!found) return;
    stopTimer(found.timer);
    this.#deadlines.delete(key);
    if (found.isWall) this.#wall--;
    if (this.#wall > 0) return;
    stopTimer(this.#stepCheck);
    this.#stepCheck = null;
  }

  /** Starts the timers again if the wall clock was stepped, or the machine suspended. */
  #afterStep(): void {
    const apart = wallMs() - monotonicMs();
    if (Math.abs(apart - this.#apart) < MIN_STEP_MS) return;
    this.#apart = apart;
    for (const [key, { leftMs, isWall }] of [...this.#deadlines]) if (isWall) this.#start(key, leftMs, true);
  }
}
