/**
 * Owns sending spans to a collector by OTLP/HTTP: some together, one exchange at a time, from a queue that is bounded. A collector
 * that is away costs spans, which are counted, and nothing else.
 */
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { Collector } from "./plan.ts";
import { type EndedSpan, toOtlp } from "./span.ts";

/** Spans that wait; those beyond are dropped. */
const MOST_WAITING = 4096;
const MOST_TOGETHER = 512;
/** The first of them waits so long for others. */
const TOGETHER_MS = 1000;
const EXCHANGE_MS = 10_000;
const MOST_ANSWER = 64 * 1024;
/** A collector that is away is asked again after these, and then loses the spans. */
const RETRY_MS = [1000, 2000, 4000, 8000, 16_000];
const MOST_RETRY_MS = 30_000;
/** What OTLP says is worth another try. */
const RETRIED: readonly number[] = [429, 502, 503, 504];

interface ExporterDeps {
  collector: Collector;
  hostId: string;
  log: Log;
}

export class Exporter {
  readonly #deps: ExporterDeps;
  readonly #stopping = new AbortController();
  #waiting: EndedSpan[] = [];
  #sending: Promise<void> | null = null;
  #timer: Timer | null = null;
  #isAway = false;
  #sent = 0;
  #dropped = 0;

  constructor(deps: ExporterDeps) {
    this.#deps = deps;
  }

  /** Since the daemon started. */
  get figures(): { sent: number; dropped: number } {
    return { sent: this.#sent, dropped: this.#dropped };
  }

  take(span: EndedSpan): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(span);
    if (this.#waiting.length >= MOST_TOGETHER) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), TOGETHER_MS);
  }

  /** Sends what waits, for so long at most; what is left then is dropped. */
  async stop(graceMs: number): Promise<void> {
    const late = setTimeout(() => this.#stopping.abort(new Error("the service stops")), graceMs);
    this.#send();
    await this.#sending;
    clearTimeout(late);
    if (this.#timer) clearTimeout(this.#timer);
  }

  #send(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, MOST_TOGETHER);
      const rejected = await this.#sendSome(spans);
      this.#sent += spans.length - rejected;
      this.#dropped += rejected;
    }
  }

  /** How many of them the collector did not take. Never rejects. */
  async #sendSome(spans: readonly EndedSpan[]): Promise<number> {
    const { collector, hostId } = this.#deps;
    const body = toOtlp(spans, hostId);
    for (const pauseMs of [...RETRY_MS, null]) {
      const told = await post(collector, body, this.#stopping.signal);
      if (told.kind === "taken") {
        this.#isNow(null);
        return Math.min(told.rejected, spans.length);
      }
      this.#isNow(told.why);
      if (told.kind === "refused" || pauseMs === null) return spans.length;
      await this.#pause(Math.min(told.retryAfterMs ?? pauseMs, MOST_RETRY_MS));
      if (this.#stopping.signal.aborted) return spans.length;
    }
    return spans.length;
  }

  /** Said when it changes, not each time. */
  #isNow(why: string | null): void {
    const { log, collector } = this.#deps;
    if ((why !== null) === this.#isAway) return;
    this.#isAway = why !== null;
    const url = collector.url;
    if (why === null) log.info("traces are taken again", { url, dropped: this.#dropped });
    else log.warn("traces are not taken", { url, error: why });
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    const over = Promise.withResolvers<void>();
    const timer = setTimeout(over.resolve, ms);
    signal.addEventListener("abort", () => over.resolve(), { once: true });
    await over.promise;
    clearTimeout(timer);
  }
}

type Told =
  | { kind: "taken"; rejected: number }
  | { kind: "refused"; why: string }
  | { kind: "away"; why: string; retryAfterMs: number | null };

/** Follows nothing: the headers are for this collector alone. */
async function post({ url, headers }: Collector, body: string, stopping: AbortSignal): Promise<Told> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(EXCHANGE_MS)]);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body,
      redirect: "manual",
      signal,
    });
    const { status } = response;
    if (response.ok) return { kind: "taken", rejected: rejectedIn(await textOf(response)) };
    await response.body?.cancel();
    const why = `status ${status}`;
    if (!RETRIED.includes(status)) return { kind: "refused", why };
    const seconds = Number(response.headers.get("retry-after") ?? "");
    return { kind: "away", why, retryAfterMs: seconds > 0 ? seconds * 1000 : null };
  } catch (error) {
    return { kind: "away", why: describeError(error), retryAfterMs: null };
  }
}

/** What is beyond the limit is left out. */
async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of response.body ?? []) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > MOST_ANSWER) break;
  }
  return text;
}

/** An answer of another form says of none that it was not taken. */
function rejectedIn(text: string): number {
  try {
    const rejected = Number(Object(Object(JSON.parse(text)).partialSuccess).rejectedSpans ?? 0);
    return rejected >= 1 ? Math.trunc(rejected) : 0;
  } catch {
    return 0;
  }
}
