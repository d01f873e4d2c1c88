/** The records of the page: loaded page by page on scrolling, and received from the stream in the meantime. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { orgAuditList } from "../../../shared/api/audit.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { get, Refused } from "../data/api.ts";
import { listen, liveState, whenOpen } from "../data/live.ts";
import { turn } from "../data/yield.ts";
import { apiQuery, type Filters, fits } from "./filters.ts";
import { NONE, type TailRecords, withHeard, withMissed, withOlder } from "./tail.ts";

const PAGE = 500;
const PATH = "/v1/orgs/self/audit";

interface KnownRecords extends TailRecords {
  key: string;
  /** Start of the next page; undefined: no answer yet; null: there are no more pages. */
  cursor: string | null | undefined;
  problem: Problem | null;
}

export interface Records extends KnownRecords {
  /** Requests the next page, unless a request is in flight. */
  more(): void;
  /** Reports whether the newest record is visible. */
  look(isTop: boolean): void;
}

/** `key` identifies the filters: other filters are another list. */
export function useRecords(key: string, filters: Filters): Records {
  const state: Signal<KnownRecords> = useSignal({ ...NONE, key, cursor: undefined, problem: null });
  const isAtTop = useRef(true);
  const more = useRef(() => {});
  useEffect(() => {
    const over = new AbortController();
    const { signal } = over;
    let isAsking = false;
    /** Records were missed while a page was loading. */
    let isFirstOld = false;
    isAtTop.current = true;
    const set = (changes: Partial<KnownRecords>) => {
      if (!signal.aborted) state.value = { ...state.peek(), ...changes };
    };
    const page = async (cursor?: string | null) => {
      const answer = await get<typeof orgAuditList>(PATH, { ...apiQuery(filters), limit: PAGE, cursor }, signal);
      // Parsing that many takes long enough: they are drawn in a separate turn.
      await turn();
      signal.throwIfAborted();
      return answer;
    };
    const guarded = async (work: () => Promise<void>) => {
      if (isAsking) return;
      isAsking = true;
      try {
        await work();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Refused)) throw error;
        set({ problem: error.problem });
      } finally {
        isAsking = false;
      }
      if (isFirstOld && !signal.aborted) {
        isFirstOld = false;
        void first();
      }
    };
    const first = () =>
      guarded(async () => {
        const { items, next_cursor } = await page();
        const missed = state.peek().cursor === undefined ? null : withMissed(state.peek(), items, isAtTop.current);
        if (missed) set({ ...missed, problem: null });
        else set({ ...withHeard({ ...NONE, shown: items }, heard, true), cursor: next_cursor, problem: null });
        heard = [];
      });
    const next = () => {
      const { cursor, isCut } = state.peek();
      if (cursor === undefined) return first();
      if (cursor === null || isCut) return;
      return guarded(async () => {
        const { items, next_cursor } = await page(cursor);
        set({ ...withOlder(state.peek(), items), cursor: next_cursor, problem: null });
      });
    };
    /** Records received before the first answer. */
    let heard: Parameters<Parameters<typeof listen>[0]>[0] & object = [];
    const stop = listen((records) => {
      if (records === null) {
        if (isAsking) isFirstOld = true;
        else void first();
        return;
      }
      const fitting = records.filter((record) => fits(filters, record));
      if (fitting.length === 0) return;
      if (state.peek().cursor === undefined) heard = [...heard, ...fitting];
      else set(withHeard(state.peek(), fitting, isAtTop.current));
    });
    // An unresponsive service may be back.
    const stopLive = liveState.subscribe((is) => {
      if (is === "live" && state.peek().key === key && state.peek().problem?.status === 0) void next();
    });
    state.value = { ...NONE, key, cursor: undefined, problem: null };
    more.current = () => void next();
    void whenOpen().then(() => (signal.aborted ? undefined : first()));
    return () => {
      over.abort();
      stop();
      stopLive();
    };
  }, [key]);
  const { value } = state;
  const known = value.key === key ? value : { ...NONE, key, cursor: undefined, problem: null };
  return {
    ...known,
    more: () => more.current(),
    look: (isTop) => {
      isAtTop.current = isTop;
      if (isTop && state.peek().fresh.length > 0)
        state.value = { ...state.peek(), ...withHeard(state.peek(), [], true) };
    },
  };
}
