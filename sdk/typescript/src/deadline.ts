/** Limits of a wait: the caller's signal and a timeout. */
import { TimeoutError } from "./errors.ts";
import { afterMs, type CallOptions, longestWaitOf } from "./transport.ts";

type Limits = Pick<CallOptions, "signal" | "waitMs" | "timeoutMs">;

/** A signal that aborts with the caller's, and on timeout with a TimeoutError with the message `told`, until `done` is called. */
export function limited({ signal, ...limits }: Limits, message: string) {
  const timeoutMs = longestWaitOf(limits);
  if (timeoutMs === undefined) return { given: signal ? { signal } : {}, done: () => {} };
  const late = new AbortController();
  const timer = afterMs(timeoutMs, () => late.abort(new TimeoutError(message)));
  const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  return { given: { signal: either }, done: () => clearTimeout(timer) };
}

/** Runs `work`, which passes the given options to each of its calls: the timeout applies to all of them together. */
export async function inTime<T, Options extends Limits>(
  options: Options,
  message: string,
  work: (each: Omit<Options, "waitMs" | "timeoutMs">) => Promise<T>,
): Promise<T> {
  const { waitMs: _wait, timeoutMs: _, ...each } = options;
  const { given, done } = limited(options, message);
  try {
    return await work({ ...each, ...given });
  } finally {
    done();
  }
}

/** The result of `work`, unless the signal aborts first: then its reason is thrown. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
