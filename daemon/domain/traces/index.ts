/** Traces: spans of calls, exported to the operator's collector. Without a collector no spans are created. */
import { randomBytes } from "node:crypto";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import type { TraceContext } from "../../../shared/traceparent.ts";
import { NO_SPAN, NO_TRACES, type Span, type SpanBegin, type Traces, untold } from "../../core/call/traces.ts";
import { fineWallMs, monotonicMs } from "../../core/clock.ts";
import type { TracesDeps } from "./deps.ts";
import { Exporter } from "./exporter.ts";

export { planTraces, type TracesPlan } from "./plan.ts";

/** Timeout at the daemon's stop: an unavailable collector must not delay it. */
const STOP_MS = 2000;
const BEYOND_RATE = "rate_limited" satisfies ErrorCode;

export interface TracesPart {
  traces: Traces;
  /** Null if no spans are exported. */
  figures(): { sent: number; dropped: number } | null;
  /** URL of a trace for people, with `{trace_id}` for its id. */
  trace_url: string | null;
  stop(): Promise<void>;
}

export function makeTraces({ plan, hostId, log }: TracesDeps): TracesPart {
  const { collector, trace_url } = plan;
  if (!collector) return { traces: NO_TRACES, figures: () => null, trace_url, stop: async () => {} };
  const exporter = new Exporter({ collector, hostId, log });
  return {
    traces: tracesTo(exporter, collector.sample),
    figures: () => exporter.figures,
    trace_url,
    stop: () => exporter.stop(STOP_MS),
  };
}

/** Passes spans to `taker` once they are over. The context of an unsampled span is propagated, and the span is not exported. */
export function tracesTo(taker: Pick<Exporter, "take">, sample: number): Traces {
  const open = (context: TraceContext, parent_id: string | null, begin: SpanBegin): Span => {
    const since = monotonicMs();
    const opened_ms = fineWallMs();
    const began_ms = begin.at ?? opened_ms;
    let isOver = false;
    return {
      context,
      isTold: true,
      end: ({ attributes, duration_ms, problem = null, isFault = true, links = [] } = {}) => {
        if (isOver) return;
        isOver = true;
        // Rate-limited calls are many, and their audit records are counted together.
        if (problem === BEYOND_RATE) return;
        // By the monotonic clock; a start before the span was opened is by the wall clock.
        const now = opened_ms + monotonicMs() - since;
        const ended_ms = Math.min(now, began_ms + (duration_ms ?? Number.POSITIVE_INFINITY));
        const { name, kind = "internal" } = begin;
        const all = { ...begin.attributes, ...attributes };
        taker.take({ context, parent_id, name, kind, began_ms, ended_ms, attributes: all, links, problem, isFault });
      },
    };
  };
  return {
    begin: (parent, begin) =>
      parent?.sampled ? open({ ...parent, span_id: randomHex(8) }, parent.span_id, begin) : untold(parent),
    root: (begin) => {
      if (sample === 0) return NO_SPAN;
      const sampled = Math.random() < sample;
      const context = { trace_id: randomHex(16), span_id: randomHex(8), sampled };
      // All spans within it learn that they are unsampled.
      return sampled ? open(context, null, begin) : untold(context);
    },
  };
}

const randomHex = (bytes: number) => randomBytes(bytes).toString("hex");
