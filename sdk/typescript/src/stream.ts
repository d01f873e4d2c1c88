/**
 * Event streams: read line by line, and resumed after the last event when the connection or the service was interrupted. An interrupted
 * stream never counts as ended.
 */
import { ConnectionError, type ErrorEvent, ProblemError, StreamError, TimeoutError } from "./errors.ts";
import {
  type CallOptions,
  delay,
  isMoving,
  isNoConnection,
  partsOf,
  type RawResponse,
  type Retry,
} from "./transport.ts";

/** The service sends at least a ping every 15 s. */
const SILENT_MS = 45_000;
/** Timeout of one attempt to resume. The first opening may have to wake a sandbox, and waits like any call. */
const REOPEN_MS = 45_000;
/** Time limit for attempts to resume without success. */
export const AWAY_MS = 120_000;
const PAUSE_MS = { first: 100, most: 2000 } as const;

export interface StreamEvent {
  type?: string;
}

/** Options of a stream of events. */
export interface EventOptions extends Pick<CallOptions, "signal" | "retry"> {
  /** Longest wait for the whole stream in ms; unlimited by default. */
  waitMs?: number;
  /** Alias of `waitMs`. */
  timeoutMs?: number;
  /** Called if the stream broke, before it is resumed. */
  onCut?(): void | Promise<void>;
}

export interface Following<Event, Place> extends Omit<EventOptions, "waitMs" | "timeoutMs"> {
  /** Opens the stream after this position; undefined: at the caller's start. Throws a TimeoutError after `timeoutMs`, if given. */
  open(after: Place | undefined, timeoutMs: number | undefined): Promise<RawResponse>;
  /** The position of an event; undefined if it has none. */
  placeOf(event: Event): Place | undefined;
  /** Whether nothing follows this event. */
  isLast(event: Event): boolean;
  /** Whether the stream may end without a last event. */
  mayEnd: boolean;
  /** Whether the caller has specified a start position. */
  isPlaced: boolean;
  retry: Retry;
  /** Whether the service has ever responded. If not, `open` has already made all useful retries. */
  hasAnswered(): boolean;
}

/** All events but pings. Throws if the service reports that the stream cannot continue, and after two minutes without it. */
export async function* follow<Event extends StreamEvent, Place>({
  open,
  placeOf,
  isLast,
  mayEnd,
  isPlaced,
  retry,
  hasAnswered,
  signal,
  onCut,
}: Following<Event, Place>): AsyncGenerator<Event> {
  let last: Place | undefined;
  let hasOpened = false;
  let hasCome = false;
  let quiet: { since: number; pauseMs: number } | null = null;
  for (;;) {
    let cut: unknown;
    try {
      const leftMs = AWAY_MS - (quiet === null ? 0 : performance.now() - quiet.since);
      const answer = await open(last, hasOpened ? Math.max(1, Math.min(REOPEN_MS, leftMs)) : undefined);
      hasOpened = true;
      for await (const event of eventsOf<Event>(answer, signal)) {
        quiet = null;
        hasCome = true;
        if (event.type === "ping") continue;
        if (isError(event)) throw new StreamError(event);
        last = placeOf(event) ?? last;
        yield event;
        if (isLast(event)) return;
      }
      if (mayEnd) return;
      cut = new ConnectionError("The stream was interrupted.");
    } catch (error) {
      signal?.throwIfAborted();
      // After an attempt that hangs, another may succeed.
      if (!mayComeBack(error) && !(hasOpened && error instanceof TimeoutError)) throw error;
      if (isNoConnection(error) && !hasAnswered()) throw error;
      cut = error;
    }
    const isBegun = last !== undefined || (isPlaced && hasCome);
    if (retry.after === "interrupted" && !isBegun) throw cut;
    if (quiet === null) await onCut?.();
    quiet ??= { since: performance.now(), pauseMs: PAUSE_MS.first };
    if (isMoving(cut)) quiet.since = performance.now();
    if (performance.now() - quiet.since > AWAY_MS) {
      const message = `The stream could not be resumed for ${AWAY_MS / 1000} s.`;
      throw new ConnectionError(message, { fault: "away", cause: cut });
    }
    await delay(quiet.pauseMs, signal);
    quiet.pauseMs = Math.min(quiet.pauseMs * 2, PAUSE_MS.most);
  }
}

function isError(event: StreamEvent): event is ErrorEvent {
  return event.type === "error";
}

function mayComeBack(error: unknown): boolean {
  if (error instanceof ProblemError || error instanceof StreamError) return error.retryable;
  return error instanceof ConnectionError;
}

/** The events of one response. Throws ConnectionError if it breaks, or is silent for too long. */
async function* eventsOf<Event>(answer: RawResponse, signal?: AbortSignal): AsyncGenerator<Event> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of partsOf(answer, SILENT_MS, signal)) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    // A truncated line is requested again.
    for (const line of lines) if (line !== "") yield eventOf<Event>(line);
  }
}

function eventOf<Event>(line: string): Event {
  try {
    return JSON.parse(line) as Event;
  } catch (error) {
    throw new ConnectionError("The answer is not a stream of roomd.", { fault: "foreign", cause: error });
  }
}
