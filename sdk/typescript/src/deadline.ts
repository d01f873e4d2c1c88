/** Owns the end of what is waited for: when the caller's signal says so, or when the time for it is over. */
import { TimeoutError } from "./errors.ts";
import { afterMs, type CallOptions, longestWaitOf } from "./transport.ts";

type Limits = Pick<CallOptions, "signal" | "waitMs" | "timeoutMs">;

/** Until it is done the signal ends with the caller's, and when the time is over, with a TimeoutError that says `told`. */
export function limited({ signal, ...limits }: Limits, told: string) {
  const timeoutMs = longestWaitOf(limits);
  if (timeoutMs === undefined) return { given: signal ? { signal } : {}, done: () => {} };
  const late = new AbortController();
  const timer = afterMs(timeoutMs, () => late.abort(new TimeoutError(told)));
  const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  return { given: { signal: either }, done: () => clearTimeout(timer) };
}

/** Carries out `work`, whose options are of each of its calls: the time is for all of them together. */
export async function inTime<T, Options extends Limits>(
  options: Options,
  told: string,
  work: (each: Omit<Options, "waitMs" | "timeoutMs">) => Promise<T>,
): Promise<T> {
  const { waitMs: _wait, timeoutMs: _, ...each } = options;
  const { given, done } = limited(options, told);
  try {
    return await work({ ...each, ...given });
  } finally {
    done();
  }
}

/** What comes of it, unless the signal ends before: then its reason is thrown. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
