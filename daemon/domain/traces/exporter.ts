/**
 * Sends spans to a collector over OTLP/HTTP: in batches, one exchange at a time, from a bounded queue. If the collector is unavailable,
 * spans are lost and counted; nothing else is affected.
 */

import { backoffMs } from "../../../shared/backoff.ts";
import { VERSION } from "../../../shared/version.ts";
import { monotonicMs, pause, startTimer, stopTimer, timeoutSignal } from "../../core/clock.ts";
import { parseJson } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { Collector } from "./plan.ts";
import { type EndedSpan, toOtlp } from "./span.ts";

/** Queued spans; further ones are dropped. */
const MAX_WAITING = 4096;
/** Limit per organization, so that none evicts the spans of others. */
const MAX_WAITING_OF_ONE = 1024;
const MAX_TOGETHER = 512;
/** The first span of a batch waits this long for others. */
const TOGETHER_MS = 1000;
const EXCHANGE_MS = 10_000;
const MAX_ANSWER = 64 * 1024;
/** Backoff while the collector is unavailable, for a minute in total; then the spans are dropped. */
const RETRY_MS = { first: 1000, most: 16_000 } as const;
const MAX_RETRIES = 5;
const MAX_RETRY_MS = 30_000;
const GIVE_UP_MS = 60_000;
/** Status codes that OTLP defines as retryable. */
const RETRIED: readonly number[] = [429, 502, 503, 504];
/** A collector refuses a whole batch because of one invalid span, or because of its size: the batch is then sent in parts. */
const REFUSES_ALL: readonly number[] = [400, 413];
const MAX_HALVINGS = 4;
const MAX_REASON = 256;

interface ExporterDeps {
  collector: Collector;
  hostId: string;
  log: Log;
}

export class Exporter {
  readonly #deps: ExporterDeps;
  readonly #stopping = new AbortController();
  readonly #waitingOf = new Map<unknown, number>();
  #waiting: EndedSpan[] = [];
  #sending: Promise<void> | null = null;
  #timer: Timer | null = null;
  /** Error of the last failed export. */
  #trouble: string | null = null;
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
    const owner = ownerOf(span);
    const own = this.#waitingOf.get(owner) ?? 0;
    if (this.#waiting.length >= MAX_WAITING || own >= MAX_WAITING_OF_ONE) {
      this.#dropped++;
      return;
    }
    this.#waiting.push(span);
    this.#waitingOf.set(owner, own + 1);
    if (this.#waiting.length >= MAX_TOGETHER) this.#send();
    else this.#timer ??= startTimer(() => this.#send(), TOGETHER_MS);
  }

  /** Sends queued spans, for `graceMs` at most; then drops the remainder. */
  async stop(graceMs: number): Promise<void> {
    const late = startTimer(() => this.#stopping.abort(new Error("the service stops")), graceMs);
    this.#send();
    await this.#sending;
    stopTimer(late);
    stopTimer(this.#timer);
  }

  #send(): void {
    stopTimer(this.#timer);
    this.#timer = null;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, MAX_TOGETHER);
      for (const span of spans) {
        const owner = ownerOf(span);
        const left = (this.#waitingOf.get(owner) ?? 0) - 1;
        if (left > 0) this.#waitingOf.set(owner, left);
        else this.#waitingOf.delete(owner);
      }
      const taken = await this.#sendSome(spans, MAX_HALVINGS);
      this.#sent += taken;
      this.#dropped += spans.length - taken;
    }
  }

  /** Returns the number of spans that the collector has accepted. Never rejects. */
  async #sendSome(spans: readonly EndedSpan[], halvings: number): Promise<number> {
    const result = await this.#sendUntilTold(spans);
    this.#isNow(result.why);
    if (result.kind === "taken") return spans.length - Math.min(result.rejected, spans.length);
    if (result.kind === "away" || !result.wasForAll || spans.length === 1 || halvings === 0) return 0;
    const half = Math.ceil(spans.length / 2);
    const first = await this.#sendSome(spans.slice(0, half), halvings - 1);
    return first + (await this.#sendSome(spans.slice(half), halvings - 1));
  }

  async #sendUntilTold(spans: readonly EndedSpan[]): Promise<ExportResult> {
    const { collector, hostId } = this.#deps;
    const giveUpAt = monotonicMs() + GIVE_UP_MS;
    let body: string;
    try {
      body = toOtlp(spans, hostId);
    } catch (error) {
      return { kind: "refused", why: describeError(error), wasForAll: true };
    }
    for (let tries = 0; ; tries++) {
      const result = await post(collector, body, this.#stopping.signal);
      if (result.kind !== "away" || tries === MAX_RETRIES) return result;
      this.#isNow(result.why);
      const pauseMs = Math.min(result.retryAfterMs ?? backoffMs(RETRY_MS, tries), MAX_RETRY_MS);
      if (monotonicMs() + pauseMs > giveUpAt) return result;
      await pause(pauseMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return result;
    }
  }

  /** Logs changes of state only, not each failure. */
  #isNow(why: string | null): void {
    const { log, collector } = this.#deps;
    if ((why === null) === (this.#trouble === null)) return;
    this.#trouble = why;
    const { url } = collector;
    if (why === null) log.info("the collector accepts traces again", { url, dropped: this.#dropped });
    else log.warn("failed to export traces", { url, error: why });
  }
}

const ownerOf = ({ attributes }: EndedSpan): unknown => attributes["roomd.org_id"];

type ExportResult =
  | { kind: "taken"; rejected: number; why: string | null }
  | { kind: "refused"; why: string; wasForAll: boolean }
  | { kind: "away"; why: string; retryAfterMs: number | null };

/** Redirects are not followed: the headers are for this collector only. */
async function post({ url, headers }: Collector, body: string, stopping: AbortSignal): Promise<ExportResult> {
  const signal = AbortSignal.any([stopping, timeoutSignal(EXCHANGE_MS)]);
  let response: Response;
  try {
    const sent = new Headers({ "User-Agent": `roomd/${VERSION}`, ...headers });
    sent.set("Content-Type", "application/json");
    response = await fetch(url, { method: "POST", headers: sent, body, redirect: "manual", signal });
  } catch (error) {
    return { kind: "away", why: describeError(error), retryAfterMs: null };
  }
  const { status } = response;
  // If reading the body fails, the status alone decides.
  const text = await textOf(response).catch(() => "");
  if (response.ok) {
    const { rejected, reason } = partialIn(text);
    return { kind: "taken", rejected, why: rejected > 0 ? `${rejected} rejected: ${reason}` : null };
  }
  const why = `status ${status}${text === "" ? "" : `: ${shown(text)}`}`;
  if (!RETRIED.includes(status)) return { kind: "refused", why, wasForAll: REFUSES_ALL.includes(status) };
  const seconds = Number(response.headers.get("retry-after") ?? "");
  return { kind: "away", why, retryAfterMs: seconds > 0 ? seconds * 1000 : null };
}

/** A collector's text, for a log. */
const shown = (text: string) => text.slice(0, MAX_REASON).replaceAll(/[^\x20-\x7e]+/g, " ");

/** Truncated at the limit. */
async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of response.body ?? []) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > MAX_ANSWER) break;
  }
  return text;
}

/** A body of another form counts as no rejected spans. */
function partialIn(text: string): { rejected: number; reason: string } {
  try {
    const { rejectedSpans, errorMessage } = Object(Object(parseJson(text)).partialSuccess);
    const rejected = Number(rejectedSpans ?? 0);
    return { rejected: rejected >= 1 ? Math.trunc(rejected) : 0, reason: shown(String(errorMessage ?? "")) };
  } catch {
    return { rejected: 0, reason: "" };
  }
}
