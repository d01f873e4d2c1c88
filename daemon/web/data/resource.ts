/**
 * Data of the service on a page: loaded once, and reloaded soon after an event that affects it. The previous data stays until the new
 * answer arrives.
 */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { Refused } from "./api.ts";
import { listen, liveState, whenOpen } from "./live.ts";

export interface Loaded<T> {
  /** Undefined until the first answer. */
  data: T | undefined;
  /** The error of the last request, if it was refused. */
  problem: Problem | null;
  again(): void;
}

/** Minimum interval of reloads, however many events concern the resource. */
const EVERY_MS = 500;

/** After a temporary refusal. */
export const AGAIN_MS = 3000;

/** Minimum interval of reloads: at first, and while events keep arriving. */
export interface Pace {
  firstMs: number;
  steadyMs: number;
}

/** Read-only calls, and calls of a page, affect nothing. */
export const isOfPage = ({ source }: AuditRecord) => source === "web";

/** `key` identifies the request: another key is another resource. `touches` selects the events that make it stale; if absent, none does. */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  touches?: (record: AuditRecord) => boolean,
  { firstMs, steadyMs }: Pace = { firstMs: EVERY_MS, steadyMs: EVERY_MS },
): Loaded<T> {
  const state: Signal<{ key: string; data: T | undefined; problem: Problem | null }> = useSignal({
    key,
    data: undefined,
    problem: null,
  });
  const again = useRef(() => {});
  useEffect(() => {
    const over = new AbortController();
    let requestedAt = Number.NEGATIVE_INFINITY;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let isOld = false;
    let pauseMs = firstMs / 2;
    const ask = async () => {
      timer = undefined;
      isAsking = true;
      isOld = false;
      requestedAt = performance.now();
      let isForNow = false;
      try {
        const data = await load(over.signal);
        if (!over.signal.aborted) state.value = { key, data, problem: null };
      } catch (error) {
        if (over.signal.aborted) return;
        if (!(error instanceof Refused)) throw error;
        state.value = { key, data: state.value.key === key ? state.value.data : undefined, problem: error.problem };
        isForNow = error.problem.retryable;
      } finally {
        isAsking = false;
      }
      if (isOld) soon();
      else if (isForNow && !over.signal.aborted) timer = setTimeout(unlessHidden, AGAIN_MS);
    };
    // When the tab is visible again, the stream is reopened, which triggers a reload.
    const unlessHidden = () => {
      timer = undefined;
      if (!document.hidden) void ask();
    };
    const soon = () => {
      isOld = true;
      if (isAsking || timer !== undefined || over.signal.aborted) return;
      const sinceMs = performance.now() - requestedAt;
      pauseMs = sinceMs > steadyMs ? firstMs / 2 : Math.min(2 * pauseMs, steadyMs);
      timer = setTimeout(ask, Math.max(0, pauseMs - sinceMs));
    };
    again.current = soon;
    void whenOpen().then(() => (over.signal.aborted ? undefined : ask()));
    const stop = listen((records) => {
      if (records === null || (touches && records.some((each) => !isOfPage(each) && touches(each)))) soon();
    });
    // If the service did not answer, or temporarily could not, retries once the stream is live again.
    const stopWatching = liveState.subscribe((live) => {
      const problem = state.peek().problem;
      if (live === "live" && (problem?.status === 0 || problem?.retryable)) soon();
    });
    return () => {
      over.abort();
      clearTimeout(timer);
      stop();
      stopWatching();
    };
  }, [key]);
  const { value } = state;
  const isThis = value.key === key;
  return {
    data: isThis ? value.data : undefined,
    problem: isThis ? value.problem : null,
    again: () => again.current(),
  };
}
