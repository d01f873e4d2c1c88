/**
 * Spans of a call's work, each within its parent span. The export is in domain/traces; without an export, a call only forwards the trace
 * context that it arrived with.
 */
import type { TraceContext } from "../../../shared/traceparent.ts";

export type Attributes = Record<string, string | number | boolean | null | undefined>;

/** The remote side of a span: a caller, none, or the producer of the received data. */
export type SpanKind = "server" | "internal" | "consumer";

export interface SpanBegin {
  name: string;
  /** Absent: internal. */
  kind?: SpanKind;
  /** Start time, if it is before now: milliseconds since 1970. */
  at?: number;
  attributes?: Attributes;
}

export interface SpanEnd {
  /** With those of its beginning. */
  attributes?: Attributes;
  /** Duration of the work, at most until now; absent: until now. */
  duration_ms?: number;
  /** The kind of error that it ended with. */
  problem?: string | null;
  /** Whether the error is the fault of the performer of the work; true if absent. */
  isFault?: boolean;
  /** Related trace contexts. */
  links?: readonly TraceContext[];
}

export interface Span {
  /** Parent context for work within the span; null without a trace. */
  readonly context: TraceContext | null;
  /** Whether the span is exported. */
  readonly isTold: boolean;
  /** Again is nothing. */
  end(end?: SpanEnd): void;
}

export interface Traces {
  /** Starts a span within `parent`; without a parent nothing is exported. */
  begin(parent: TraceContext | null, begin: SpanBegin): Span;
  /** The root span of a trace; the configuration decides whether there is one. */
  root(begin: SpanBegin): Span;
}

export const NO_SPAN: Span = { context: null, isTold: false, end: () => {} };

/** A span that is not exported: work within it continues the given context. */
export const untold = (context: TraceContext | null): Span =>
  context === null ? NO_SPAN : { context, isTold: false, end: () => {} };

/** No export: work continues the context that it arrived with. */
export const NO_TRACES: Traces = { begin: untold, root: () => NO_SPAN };

/** Within a trace, or as a root span: work that only reads, or may not be carried out, starts none. */
export function beginOrRoot(traces: Traces, parent: TraceContext | null, mayBeRoot: boolean, begin: SpanBegin): Span {
  return parent === null && mayBeRoot ? traces.root(begin) : traces.begin(parent, begin);
}

/** Trace of one call: its span is created on first use, since the parent may be in the call's fields. */
export class CallTrace {
  readonly #traces: Traces;
  readonly #begin: SpanBegin;
  #mayBeRoot = false;
  #parent: TraceContext | null;
  #span: Span | null = null;
  #links: TraceContext[] | null = null;

  constructor(traces: Traces, parent: TraceContext | null, begin: SpanBegin) {
    this.#traces = traces;
    this.#parent = parent;
    this.#begin = begin;
  }

  /** Parent context for work of this call. */
  get context(): TraceContext | null {
    return this.#own.context;
  }

  get isTold(): boolean {
    return this.#own.isTold;
  }

  /** The call is carried out, and changes something: without a trace it starts one. */
  starts(): void {
    this.#mayBeRoot = true;
  }

  /** The call concerns something of that context: it is the parent if the caller gave none, else a link. */
  follow(place: TraceContext | null): void {
    if (place === null) return;
    if (this.#parent === null && this.#span === null) this.#parent = place;
    else this.link(place);
  }

  /**
   * The call answers work of that context, which becomes the parent. Within one trace, or if that context is not sampled, the caller's
   * remains the parent.
   */
  answer(place: TraceContext | null): void {
    const given = this.#parent;
    const isNear = given !== null && (given.trace_id === place?.trace_id || (given.sampled && !place?.sampled));
    if (place === null || given === null || isNear || this.#span !== null) this.follow(place);
    else {
      this.#parent = place;
      this.link(given);
    }
  }

  link(place: TraceContext): void {
    this.#links ??= [];
    this.#links.push(place);
  }

  /** Calls `end` only if the span is exported. */
  end(end: () => SpanEnd): void {
    if (this.isTold) this.#own.end({ ...end(), ...(this.#links ? { links: this.#links } : {}) });
  }

  get #own(): Span {
    if (this.#span) return this.#span;
    const span = beginOrRoot(this.#traces, this.#parent, this.#mayBeRoot, this.#begin);
    // Until the call is carried out nothing continues it: until then `NO_SPAN` is not cached.
    if (span !== NO_SPAN || this.#mayBeRoot) this.#span = span;
    return span;
  }
}

/** For work that belongs to no call. */
export const untraced = (): CallTrace => new CallTrace(NO_TRACES, null, { name: "" });
