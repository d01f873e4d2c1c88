/** Owns traces: spans of what calls have done, on their way to the operator's collector. Without one nothing is made of them. */
import { randomBytes } from "node:crypto";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import type { TraceContext } from "../../../shared/traceparent.ts";
import { fineWallMs, monotonicMs } from "../../core/clock.ts";
import { NO_SPAN, NO_TRACES, type Span, type SpanBegin, type Traces, untold } from "../../core/traces.ts";
import type { TracesDeps } from "./deps.ts";
import { Exporter } from "./exporter.ts";

export { planTraces, type TracesPlan } from "./plan.ts";

/** Ends with the daemon: a collector that is away must not hold it up. */
const STOP_MS = 2000;
const BEYOND_RATE = "rate_limited" satisfies ErrorCode;

export interface TracesPart {
  traces: Traces;
  /** Null where none are told. */
  figures(): { sent: number; dropped: number } | null;
  /** Where people look at a trace, with `{trace_id}` for its id. */
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

/** Spans that `taker` is given once they are over. What its beginner does not want kept is handed on, and not told. */
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
        // Those who call too fast are many, and their records are counted together.
        if (problem === BEYOND_RATE) return;
        // By the clock that nobody sets; a moment before it was opened is by the other.
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
      // All that is done within it hears that it is not wanted.
      return sampled ? open(context, null, begin) : untold(context);
    },
  };
}

const randomHex = (bytes: number) => randomBytes(bytes).toString("hex");
