/**
 * Owns what of its work a call tells to traces: spans, each within the one because of which it was done. Where they go is
 * domain/traces; where they go nowhere, a call only hands on the place in the trace that it came with.
 */
import type { TraceContext } from "../../shared/traceparent.ts";

export type Attributes = Record<string, string | number | boolean | null | undefined>;

/** Who is on the other side of a span: a caller, nobody, or who had sent what is read. */
export type SpanKind = "server" | "internal" | "consumer";

interface SpanBegin {
  name: string;
  /** Absent: internal. */
  kind?: SpanKind;
  /** When it began, in milliseconds since 1970; now if absent. */
  at?: number;
}

interface SpanEnd {
  attributes?: Attributes;
  /** How long it took; until now if absent, and never longer. */
  duration_ms?: number;
  /** The code of the error by which it ended. */
  problem?: string | null;
  /** Other places that have to do with it. */
  links?: readonly TraceContext[];
}

export interface Span {
  /** What is done within it continues this; null where there is no trace. */
  readonly context: TraceContext | null;
  /** Again is nothing. */
  end(end?: SpanEnd): void;
}

export interface Traces {
  /** A span within another; `parent` is null where there is none, and then nothing is told. */
  begin(parent: TraceContext | null, begin: SpanBegin): Span;
  /** The same, as the first span of a trace of its own; whether there is one is the configuration's to say. */
  root(begin: SpanBegin): Span;
}

/** Nobody takes spans: what is done continues what it came with. */
export const NO_TRACES: Traces = {
  begin: (parent) => (parent === null ? NO_SPAN : { context: parent, end: () => {} }),
  root: () => NO_SPAN,
};

export const NO_SPAN: Span = { context: null, end: () => {} };

/** Of one call: its span begins when something first asks for it, since what it continues may stand in its fields. */
export class CallTrace {
  readonly #traces: Traces;
  readonly #begin: SpanBegin;
  readonly #isReading: boolean;
  #parent: TraceContext | null;
  #span: Span | null = null;
  #links: TraceContext[] | null = null;

  /** One that only reads begins no trace of its own. */
  constructor(traces: Traces, parent: TraceContext | null, name: string, isReading: boolean) {
    this.#traces = traces;
    this.#parent = parent;
    this.#isReading = isReading;
    // Without anybody to tell nothing is measured.
    this.#begin = traces === NO_TRACES ? { name } : { name, kind: "server", at: nowMs() };
  }

  /** What is done for this call continues this. */
  get context(): TraceContext | null {
    return this.#own.context;
  }

  /** It is about something of that place: where the caller said nothing it is continued, else linked. */
  follow(place: TraceContext | null): void {
    if (place === null) return;
    if (this.#parent === null && this.#span === null) this.#parent = place;
    else if (place.span_id !== this.#parent?.span_id) this.link(place);
  }

  link(place: TraceContext): void {
    this.#links ??= [];
    this.#links.push(place);
  }

  /** `end` is asked only where somebody takes it. */
  end(end: () => SpanEnd): void {
    if (this.#traces === NO_TRACES || this.context === null) return;
    this.#own.end({ ...end(), ...(this.#links ? { links: this.#links } : {}) });
  }

  get #own(): Span {
    const parent = this.#parent;
    this.#span ??=
      parent === null && !this.#isReading ? this.#traces.root(this.#begin) : this.#traces.begin(parent, this.#begin);
    return this.#span;
  }
}

/** Of what is no call of anybody. */
export const untraced = (): CallTrace => new CallTrace(NO_TRACES, null, "", true);

/** In milliseconds since 1970, finer than the clock of dates. */
export const nowMs = (): number => performance.timeOrigin + performance.now();
