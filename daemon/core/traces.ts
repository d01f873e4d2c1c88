/**
 * Owns what of its work a call tells to traces: spans, each within the one because of which it was done. Where they go is
 * domain/traces; where they go nowhere, a call only hands on the place in the trace that it came with.
 */
import type { TraceContext } from "../../shared/traceparent.ts";

export type Attributes = Record<string, string | number | boolean | null | undefined>;

/** Who is on the other side of a span: a caller, nobody, or who had sent what is read. */
export type SpanKind = "server" | "internal" | "consumer";

export interface SpanBegin {
  name: string;
  /** Absent: internal. */
  kind?: SpanKind;
  /** Where it is in time, where it began before now: milliseconds since 1970. */
  at?: number;
  attributes?: Attributes;
}

export interface SpanEnd {
  /** With those of its beginning. */
  attributes?: Attributes;
  /** How long it took; until now if absent, and never longer. */
  duration_ms?: number;
  /** What kind of error it ended with. */
  problem?: string | null;
  /** Whether that is the fault of who did it; true if absent. */
  isFault?: boolean;
  /** Other places that have to do with it. */
  links?: readonly TraceContext[];
}

export interface Span {
  /** What is done within it continues this; null where there is no trace. */
  readonly context: TraceContext | null;
  /** Whether anybody is told of it. */
  readonly isTold: boolean;
  /** Again is nothing. */
  end(end?: SpanEnd): void;
}

export interface Traces {
  /** A span within another; without one nothing is told. */
  begin(parent: TraceContext | null, begin: SpanBegin): Span;
  /** The first span of a trace; whether there is one is the configuration's to say. */
  root(begin: SpanBegin): Span;
}

export const NO_SPAN: Span = { context: null, isTold: false, end: () => {} };

/** Nobody is told of it; what is done within it continues what it was begun in. */
export const untold = (context: TraceContext | null): Span =>
  context === null ? NO_SPAN : { context, isTold: false, end: () => {} };

/** Nobody takes spans: what is done continues what it came with. */
export const NO_TRACES: Traces = { begin: untold, root: () => NO_SPAN };

/** Within a trace, or as the first of one: what only reads, or is not sure to be done, begins none. */
export function beginOrRoot(traces: Traces, parent: TraceContext | null, mayBeRoot: boolean, begin: SpanBegin): Span {
  return parent === null && mayBeRoot ? traces.root(begin) : traces.begin(parent, begin);
}

/** Of one call: its span begins when something first asks for it, since what it continues may stand in its fields. */
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

  /** What is done for this call continues this. */
  get context(): TraceContext | null {
    return this.#own.context;
  }

  get isTold(): boolean {
    return this.#own.isTold;
  }

  /** It is carried out, and changes something: without a trace it begins one. */
  starts(): void {
    this.#mayBeRoot = true;
  }

  /** It is about something of that place: what its caller said is continued, else this. */
  follow(place: TraceContext | null): void {
    if (place === null) return;
    if (this.#parent === null && this.#span === null) this.#parent = place;
    else this.link(place);
  }

  /** It answers what was done there: that is continued. Within one trace, and where nobody is to be told of that, the caller's is. */
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

  /** `end` is asked only where somebody is told. */
  end(end: () => SpanEnd): void {
    if (this.isTold) this.#own.end({ ...end(), ...(this.#links ? { links: this.#links } : {}) });
  }

  get #own(): Span {
    if (this.#span) return this.#span;
    const span = beginOrRoot(this.#traces, this.#parent, this.#mayBeRoot, this.#begin);
    // Before it is carried out nothing continues it: who asks then is told what there is.
    if (span !== NO_SPAN || this.#mayBeRoot) this.#span = span;
    return span;
  }
}

/** Of what is no call of anybody. */
export const untraced = (): CallTrace => new CallTrace(NO_TRACES, null, { name: "" });
