/**
 * Text by which a trace is propagated between programs: `traceparent` of W3C Trace Context, level 1. It is parsed strictly and rewritten
 * from the parsed fields, so that nothing else of an untrusted text is propagated.
 */

/** Name of the HTTP header, of the field in MCP's `_meta`, and of the header of messages. */
export const TRACEPARENT = "traceparent";
/** The variable with which a command continues the trace of its caller. */
export const TRACEPARENT_VARIABLE = "TRACEPARENT";

/** A position in a trace: this span is the parent of subsequent work. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  trace_id: string;
  /** 16 hexadecimal digits. */
  span_id: string;
  /** Whether the origin of the trace requests that its spans are recorded. */
  sampled: boolean;
}

/** For later versions, the same fields are read; any further fields are ignored. */
const FORM = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-.*)?$/;
/** Maximum length; no program writes a longer value. */
const MAX_LENGTH = 256;

/** Null if absent or malformed. */
export function readTraceparent(text: unknown): TraceContext | null {
  if (typeof text !== "string" || text.length > MAX_LENGTH) return null;
  const [, version, trace_id, span_id, flags, rest] = FORM.exec(text) ?? [];
  if (trace_id === undefined || span_id === undefined || flags === undefined) return null;
  // Additional fields belong to later versions.
  if (version === "00" && rest !== undefined) return null;
  return { trace_id, span_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function writeTraceparent({ trace_id, span_id, sampled }: TraceContext): string {
  return `00-${trace_id}-${span_id}-${sampled ? "01" : "00"}`;
}
