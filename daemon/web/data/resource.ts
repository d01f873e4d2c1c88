/**
 * Owns what a page shows of the service: asked for once, and again soon after an event that touches it. What was there stays until
 * the new answer is there.
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
  /** Why the last one was refused. */
  problem: Problem | null;
  again(): void;
}

/** At most so often, however many events touch it. */
const EVERY_MS = 500;

/** After what was refused for now. */
export const AGAIN_MS = 3000;

/** How often at most something is asked for: at first, and where events touch it all the time. */
export interface Pace {
  firstMs: number;
  steadyMs: number;
}

/** What only reads, and what a page has asked, touches nothing. */
export const isOfPage = ({ source }: AuditRecord) => source === "web";

/**
 * `key` names what is asked for: another key is another thing. `touches` says which events make it old; where it is absent none does.
 */
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
    let asked = Number.NEGATIVE_INFINITY;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let isOld = false;
    let pauseMs = firstMs / 2;
    const ask = async () => {
      timer = undefined;
      isAsking = true;
      isOld = false;
      asked = performance.now();
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
    // Once it is seen, the stream is opened again, and tells.
    const unlessHidden = () => {
      timer = undefined;
      if (!document.hidden) void ask();
    };
    const soon = () => {
      isOld = true;
      if (isAsking || timer !== undefined || over.signal.aborted) return;
      const sinceMs = performance.now() - asked;
      pauseMs = sinceMs > steadyMs ? firstMs / 2 : Math.min(2 * pauseMs, steadyMs);
      timer = setTimeout(ask, Math.max(0, pauseMs - sinceMs));
    };
    again.current = soon;
    void whenOpen().then(() => (over.signal.aborted ? undefined : ask()));
    const stop = listen((records) => {
      if (records === null || (touches && records.some((each) => !isOfPage(each) && touches(each)))) soon();
    });
    // Where it did not answer, or could not for a while, it does again once it is heard of again.
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
