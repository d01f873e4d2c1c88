/** Ended spans, and their OTLP form in JSON (opentelemetry.io/docs/specs/otlp, opentelemetry-proto 1.x). Pure. */
import type { TraceContext } from "../../../shared/traceparent.ts";
import { VERSION } from "../../../shared/version.ts";
import type { Attributes, SpanKind } from "../../core/call/traces.ts";

export interface EndedSpan {
  context: TraceContext;
  parent_id: string | null;
  name: string;
  kind: SpanKind;
  /** Milliseconds since 1970. */
  began_ms: number;
  ended_ms: number;
  attributes: Attributes;
  links: readonly TraceContext[];
  problem: string | null;
  isFault: boolean;
}

const KINDS: Record<SpanKind, number> = { internal: 1, server: 2, consumer: 5 };
const STATUS_ERROR = 2;
const MAX_LINKS = 128;
const MAX_TEXT = 256;

/** The body of one export. */
export function toOtlp(spans: readonly EndedSpan[], hostId: string): string {
  const resource = { "service.name": "roomd", "service.version": VERSION, "service.instance.id": hostId };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: toAttributes(resource) },
        scopeSpans: [{ scope: { name: "roomd", version: VERSION }, spans: spans.map(toSpan) }],
      },
    ],
  });
}

function toSpan(span: EndedSpan) {
  const { context, parent_id, name, kind, began_ms, ended_ms, attributes, links, problem, isFault } = span;
  return {
    traceId: context.trace_id,
    spanId: context.span_id,
    ...(parent_id === null ? {} : { parentSpanId: parent_id }),
    flags: 1,
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(began_ms),
    endTimeUnixNano: nanoseconds(Math.max(began_ms, ended_ms)),
    attributes: toAttributes(problem === null ? attributes : { ...attributes, "error.type": problem }),
    ...(links.length === 0 ? {} : { links: links.slice(0, MAX_LINKS).map(toLink) }),
    // A fault of the caller is not an error of the service.
    ...(problem === null || !isFault ? {} : { status: { code: STATUS_ERROR, message: problem } }),
  };
}

const toLink = ({ trace_id, span_id }: TraceContext) => ({ traceId: trace_id, spanId: span_id });

/** Too large for a JSON number: a string, as required by OTLP. */
const nanoseconds = (ms: number) => `${BigInt(Math.round(ms * 1000)) * 1000n}`;

function toAttributes(attributes: Attributes) {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === null || value === undefined || Number.isNaN(value) ? [] : [{ key, value: toValue(value) }],
  );
}

function toValue(value: string | number | boolean) {
  if (typeof value === "string") return { stringValue: value.slice(0, MAX_TEXT).toWellFormed() };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
