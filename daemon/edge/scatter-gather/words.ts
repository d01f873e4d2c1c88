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

/** The same of sentences that are there already. */
export function warned(warnings: string[]): { warnings?: string[] } {
  return warnings.length === 0 ? {} : { warnings };
}

/** The same in a stream: clients of any version leave pings out. */
export function warningPing(silent: readonly string[], missing: string): StreamEvent {
  return { id: null, data: { type: "ping", warnings: warningsOf(silent, missing) } };
}
