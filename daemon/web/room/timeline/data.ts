/**
 * Owns a timeline's items as they come: the newest page is asked for, what happens then is heard by the tab's stream, and what is older
 * is asked for when one goes there.
 */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { roomTimeline } from "../../../../shared/api/overview.ts";
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { toItem } from "../../../../shared/timeline/to-item.ts";
import { get, part, type Query, Refused } from "../../data/api.ts";
import { listen, liveState, whenOpen } from "../../data/live.ts";
import { now } from "../../data/now.ts";
import { AGAIN_MS } from "../../data/resource.ts";
import { turn } from "../../data/turn.ts";
import { auditOf } from "../load.ts";
import { goesOn, Items, MOST_ITEMS } from "./items.ts";

const PAGE = 1000;
/** However many events come, so often is drawn. */
const DRAW_MS = 250;

export interface TimelineData {
  items: Items;
  /** Changes when they do. */
  version: Signal<number>;
  /** How many have come by the stream. */
  came: Signal<number>;
  isLoaded: Signal<boolean>;
  /** Whether there is something older that was not asked for. */
  hasOlder: Signal<boolean>;
  problem: Signal<Problem | null>;
  /** Where a trace is shown, with `{trace_id}` for its id; null: nowhere. */
  traceUrl: Signal<string | null>;
  loadOlder(): void;
  /** Asks for what was refused. */
  again(): void;
}

/** Of a room that has ended only its audit is left, of which the same items are made. */
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
    /** Whether something was missed while one asked. */
    let isOld = false;
    /** From where on it was refused; undefined: it was not. */
    let refused: string | null | undefined;
    let againTimer: ReturnType<typeof setTimeout> | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let heard: TimelineItem[] = [];
    /** What was drawn since it was asked what goes on; null: nobody asks. */
    let drawn: TimelineItem[] | null = null;
    /** Whether the room's state has changed since that was asked. */
    let hasChanged = false;
    /** How often what goes on was answered: the answer of an older request for the page says less. */
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
        // Each in a turn of its own: with tens of thousands one of them alone takes long enough.
        await turn();
        items.add(page.items);
        if (from === null && answers === before) items.replaceOpen(page.open);
        await turn();
        void items.laid;
        await turn();
        void items.lanes;
        await turn();
        if (over.signal.aborted) return;
        // What was heard of again after something was missed has its older part already.
        if (from !== null || !hasBegun) cursor = page.next_cursor;
        hasBegun = true;
        hasOlder.value = cursor !== null && items.all.length < MOST_ITEMS;
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
    // Once it is seen, the stream is opened again, and tells.
    const unlessHidden = () => {
      if (!document.hidden) again.current();
    };
    older.current = () => {
      if (cursor !== null && hasOlder.value) void ask(cursor);
    };
    const draw = () => {
      timer = undefined;
      const more = heard;
      heard = [];
      drawn?.push(...more);
      // What went on and is now on record is drawn as that.
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
        // What has ended since it was asked goes on no more, whatever the answer says.
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
      heard.push(...records.flatMap((record) => toItem(record) ?? []));
      if (heard.length > 0) timer ??= setTimeout(draw, DRAW_MS);
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
