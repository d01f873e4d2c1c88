/** Data of a timeline: the newest page is loaded, new items come from the tab's stream, and older ones are loaded on demand. */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { roomTimeline } from "../../../../shared/api/overview/overview.ts";
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { toItem } from "../../../../shared/timeline/to-item.ts";
import { get, part, type Query, Refused } from "../../data/api.ts";
import { listen, liveState, whenOpen } from "../../data/live.ts";
import { now } from "../../data/now.ts";
import { AGAIN_MS } from "../../data/resource.ts";
import { turn } from "../../data/yield.ts";
import { auditOf } from "../load.ts";
import { goesOn, Items, MAX_ITEMS } from "./items.ts";

const PAGE = 1000;
/** Interval of redraws, independent of the number of events. */
const DRAW_MS = 250;

export interface TimelineData {
  items: Items;
  /** Changes when they do. */
  version: Signal<number>;
  /** Number of items that arrived by the stream. */
  came: Signal<number>;
  isLoaded: Signal<boolean>;
  /** Whether there are older items that are not loaded. */
  hasOlder: Signal<boolean>;
  problem: Signal<Problem | null>;
  /** URL of a trace viewer, with `{trace_id}` for the id; null: none. */
  traceUrl: Signal<string | null>;
  loadOlder(): void;
  /** Retries a refused request. */
  again(): void;
}

/** Of a destroyed room only its audit remains, from which the same items are made. */
async function pageOf(room: RoomRecord, query: Query, signal: AbortSignal) {
  if (room.state === "active")
    return await get<typeof roomTimeline>(`/v1/rooms/${part(room.room_id)}/timeline`, query, signal);
  const { items, next_cursor } = await auditOf(room, query, signal);
  return { items: items.flatMap((record) => toItem(record) ?? []), open: [], next_cursor, trace_url: null };
}

export function useTimeline(room: RoomRecord): TimelineData {
  const { room_uid, state } = room;
  const items = useRef(new Items()).current;
  const version = useSignal(0);
  const came = useSignal(0);
  const isLoaded = useSignal(false);
  const hasOlder = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const traceUrl = useSignal<string | null>(null);
  const older = useRef(() => {});
  const lookAtOpen = useRef(() => {});
  const again = useRef(() => {});
  useEffect(() => {
    const over = new AbortController();
    let cursor: string | null = null;
    let hasBegun = false;
    let isAsking = false;
    /** Whether events were missed during a request. */
    let isOld = false;
    /** Start of a refused request; undefined: none was refused. */
    let refused: string | null | undefined;
    let againTimer: ReturnType<typeof setTimeout> | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let received: TimelineItem[] = [];
    /** Items drawn since the request for open spans; null: no request is in flight. */
    let drawn: TimelineItem[] | null = null;
    /** Whether the room's state has changed since that request. */
    let hasChanged = false;
    /** Number of answers about open spans: the answer of an earlier page request is older. */
    let answers = 0;
    const ask = async (from: string | null) => {
      if (isAsking) {
        isOld ||= from === null;
        return;
      }
      isAsking = true;
      clearTimeout(againTimer);
      const before = answers;
      try {
        const page = await pageOf(room, { limit: PAGE, cursor: from }, over.signal);
        // Each in a separate turn: with tens of thousands of items, one of them alone takes long enough.
        await turn();
        items.add(page.items);
        if (from === null && answers === before) items.replaceOpen(page.open);
        await turn();
        void items.laid;
        await turn();
        void items.lanes;
        await turn();
        if (over.signal.aborted) return;
        // After missed events, the older part is already loaded.
        if (from !== null || !hasBegun) cursor = page.next_cursor;
        hasBegun = true;
        hasOlder.value = cursor !== null && items.all.length < MAX_ITEMS;
        problem.value = null;
        refused = undefined;
        traceUrl.value = page.trace_url;
        isLoaded.value = true;
        version.value++;
      } catch (error) {
        if (over.signal.aborted) return;
        if (!(error instanceof Refused)) throw error;
        problem.value = error.problem;
        refused = from;
        if (error.problem.retryable) againTimer = setTimeout(unlessHidden, AGAIN_MS);
      } finally {
        isAsking = false;
      }
      if (!isOld) return;
      isOld = false;
      void ask(null);
    };
    again.current = () => {
      if (refused !== undefined) void ask(refused);
    };
    // When the tab is visible again, the stream is reopened, which triggers a reload.
    const unlessHidden = () => {
      if (!document.hidden) again.current();
    };
    older.current = () => {
      if (cursor !== null && hasOlder.value) void ask(cursor);
    };
    const draw = () => {
      timer = undefined;
      const more = received;
      received = [];
      drawn?.push(...more);
      // An open span that now has a record is drawn from the record.
      items.replaceOpen(goesOn(items.open, more));
      came.value += items.add(more);
      version.value++;
    };
    lookAtOpen.current = async () => {
      if (drawn !== null) {
        hasChanged = true;
        return;
      }
      drawn = [];
      hasChanged = false;
      try {
        const { open } = await pageOf(room, { limit: 1 }, over.signal);
        answers++;
        // Spans that ended since the request are closed, whatever the answer contains.
        if (!over.signal.aborted && items.replaceOpen(goesOn(open, drawn))) version.value++;
      } catch (error) {
        if (!over.signal.aborted && !(error instanceof Refused)) throw error;
      } finally {
        drawn = null;
      }
      if (hasChanged && !over.signal.aborted) lookAtOpen.current();
    };
    void whenOpen().then(() => (over.signal.aborted ? undefined : ask(null)));
    const stop = listen((records) => {
      if (records === null) {
        void ask(null);
        return;
      }
      received.push(...records.flatMap((record) => toItem(record) ?? []));
      if (received.length > 0) timer ??= setTimeout(draw, DRAW_MS);
    });
    const stopWatching = liveState.subscribe((live) => {
      const { value } = problem;
      if (live === "live" && (value?.status === 0 || value?.retryable)) again.current();
    });
    return () => {
      over.abort();
      clearTimeout(timer);
      clearTimeout(againTimer);
      stop();
      stopWatching();
    };
  }, [room_uid, state]);
  useEffect(() => now.subscribe((state) => (state ? lookAtOpen.current() : undefined)), [room_uid]);
  return {
    ...{ items, version, came, isLoaded, hasOlder, problem, traceUrl },
    loadOlder: () => older.current(),
    again: () => again.current(),
  };
}
