/**
 * The daemon's clock: the only module of the daemon that reads the runtime's clocks and sets its timers. Stored, displayed or exchanged
 * timestamps are wall-clock time, which an operator or NTP may step. Durations, deadlines and timeouts within a thread are monotonic time.
 * Imports nothing, since threads load it too.
 */

/** Wall-clock time: milliseconds since 1970. */
export function wallMs(): number {
  return Date.now();
}

/** Monotonic time: milliseconds since the start of this thread, unaffected by steps of the wall clock. */
export function monotonicMs(): number {
  return performance.now();
}

/** Smaller differences are rounding: the wall clock has a resolution of one millisecond. */
const MAX_APART_MS = 1;
/** Wall-clock time at zero of the monotonic clock. */
let origin = performance.timeOrigin;

/** Wall-clock time with fractions of a millisecond; follows steps of the wall clock. */
export function fineWallMs(): number {
  const moment = origin + monotonicMs();
  const apart = wallMs() - moment;
  if (Math.abs(apart) <= MAX_APART_MS) return moment;
  origin += apart;
  return moment + apart;
}

/**
 * Returns a function that computes the age of a timestamp from another thread's monotonic clock, which has another zero. The age is never
 * too large: it is exact after one timestamp has arrived without delay.
 */
export function agesOfThread(): (moment: number) => number {
  let apart = Number.POSITIVE_INFINITY;
  return (moment) => {
    const since = monotonicMs() - moment;
    apart = Math.min(apart, since);
    return since - apart;
  };
}

/** The last moment as text: tens of requests start within a millisecond. */
let last = { ms: Number.NaN, text: "" };

/** Wall-clock time as RFC 3339 UTC with milliseconds. */
export function now(): string {
  const ms = wallMs();
  if (ms !== last.ms) last = { ms, text: at(ms) };
  return last.text;
}

export function at(ms: number): string {
  return new Date(ms).toISOString();
}

/** The moment `seconds` after an RFC 3339 moment. */
export function after(moment: string, seconds: number): string {
  return at(Date.parse(moment) + seconds * 1000);
}

type Charge = (work: () => void) => () => void;

let charged: Charge = (work) => work;

/**
 * Wraps the callback of each timer and interval of this thread in `charge`, applied when the timer is set, to account for event loop time.
 */
export function chargeTimers(charge: Charge): void {
  charged = charge;
}

/** Calls `work` once, after `ms`. */
export function startTimer(work: () => void, ms: number): Timer {
  return setTimeout(charged(work), ms);
}

/** Calls `work` every `ms`. */
export function startInterval(work: () => void, ms: number): Timer {
  return setInterval(charged(work), ms);
}

/** The same for that account itself, whose work is charged to no owner. */
export function startUnchargedInterval(work: () => void, ms: number): Timer {
  return setInterval(work, ms);
}

/** Stops a timer or an interval; does nothing if absent or it has ended. */
export function stopTimer(timer: Timer | null | undefined): void {
  clearTimeout(timer ?? undefined);
}

/** Resolves after `ms`; rejects with the signal's reason if that aborts first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      stopTimer(timer);
      reject(signal?.reason);
    };
    const timer = startTimer(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Resolves after `ms`, or when the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(ms, signal).catch(() => {});
}

/** A signal that aborts with a TimeoutError after `ms`. */
export function timeoutSignal(ms: number): AbortSignal {
  const late = new AbortController();
  startTimer(() => late.abort(new DOMException("The operation timed out.", "TimeoutError")), ms).unref();
  return late.signal;
}
