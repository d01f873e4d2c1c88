/** Warnings about hosts that did not answer. */
import type { StreamEvent } from "../../core/call/operation.ts";

/** A sentence for each. */
export function warningsOf(silent: readonly string[], missing: string): string[] {
  return silent.map((host) => `The host ${host} does not answer: ${missing}`);
}

/** The field `warnings`, absent if there are no warnings. */
export function withWarnings(silent: readonly string[], missing: string): { warnings?: string[] } {
  return warned(warningsOf(silent, missing));
}

/** The `warnings` field with given sentences; absent if none exist. */
export function warned(warnings: string[]): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings };
}

/** A ping event with warnings, for a stream: clients of any version ignore pings. */
export function warningPing(silent: readonly string[], missing: string): StreamEvent {
  return { id: null, data: { type: "ping", warnings: warningsOf(silent, missing) } };
}
