/** Trace context of calls (W3C Trace Context): that of a message, of the command that runs this program, or one that the program sets. */
import { AsyncLocalStorage } from "node:async_hooks";

/** A trace context: a `traceparent` text, or a message, which carries its sender's trace context. */
export type TracePlace = string | { headers: Readonly<Record<string, string>> };

const FORM = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;
const within = new AsyncLocalStorage<string | undefined>();

/**
 * Runs `work`: all its calls continue the trace of `place`, as do the commands and messages that they start. With a message as `place` they
 * continue its sender's trace. A `place` without a trace has no effect.
 */
export function continuing<T>(place: TracePlace, work: () => T): T {
  const given = typeof place === "string" ? place : place.headers.traceparent;
  return FORM.test(given ?? "") ? within.run(given, work) : work();
}

/** The parent of a call: the context in which it runs, otherwise `usual`. */
export function traceparentOf(usual: string | (() => string | undefined) | undefined): string | undefined {
  const given = within.getStore() ?? (typeof usual === "function" ? usual() : usual);
  return FORM.test(given ?? "") ? given : undefined;
}
