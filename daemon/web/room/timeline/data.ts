/**
 * Owns a timeline's items as they come: the newest page is asked for, what happens then is heard by the tab's stream, and what is older
 * is asked for when one goes there.
 */
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { roomTimeline } from "../../../../shared/api/overview.ts";
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import { toItem } from "../../../../shared/timeline/to-item.ts";
import { get, part, Refused } from "../../data/api.ts";
import { listen, whenOpen } from "../../data/live.ts";
import { turn } from "../../data/turn.ts";
import { Items, MOST_ITEMS } from "./items.ts";

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
}

export function useTimeline({ room_id, room_uid, state }: RoomRecord): TimelineData {
  const path = `/v1/rooms/${part(state === "active" ? room_id : room_uid)}/timeline`;
  const items = useRef(new Items()).current;
  const version = useSignal(0);
  const came = useSignal(0);
  const isLoaded = useSignal(false);
  const hasOlder = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  const traceUrl = useSignal<string | null>(null);
  const older = useRef(() => {});
  useEffect(() => {
    const over = new AbortController();
    let cursor: string | null = null;
    let isAsking = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let heard: Parameters<typeof items.add>[0][number][] = [];
    const ask = async (from: string | null) => {
      if (isAsking) return;
      isAsking = true;
      try {
        const page = await get<typeof roomTimeline>(path, { limit: PAGE, cursor: from }, over.signal);
        // Each in a turn of its own: with tens of thousands one of them alone takes long enough.
        await turn();
        items.add(page.items);
        if (from === null) items.replaceOpen(page.open);
        await turn();
        void items.laid;
        await turn();
        void items.lanes;
        await turn();
        if (over.signal.aborted) return;
        // What was heard of again after something was missed has its older part already.
        if (from !== null || !isLoaded.value) cursor = page.next_cursor;
        hasOlder.value = cursor !== null && items.all.length < MOST_ITEMS;
        problem.value = null;
        traceUrl.value = page.trace_url;
        isLoaded.value = true;
        version.value++;
      } catch (error) {
        if (over.signal.aborted) return;
        if (!(error instanceof Refused)) throw error;
        problem.value = error.problem;
      } finally {
        isAsking = false;
      }
    };
    older.current = () => {
      if (cursor !== null && hasOlder.value) void ask(cursor);
    };
    const draw = () => {
      timer = undefined;
      const more = heard;
      heard = [];
      // What went on and is now on record is drawn as that.
      const ended = new Set(more.flatMap(({ ref }) => (ref ? [`${ref.type} ${ref.id}`] : [])));
      const { open } = items;
      const left = open.filter(({ ref }) => !(ref && ended.has(`${ref.type} ${ref.id}`)));
      if (left.length < open.length) items.replaceOpen(left);
      came.value += items.add(more);
      version.value++;
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
    return () => {
      over.abort();
      clearTimeout(timer);
      stop();
    };
  }, [path]);
  return { items, version, came, isLoaded, hasOlder, problem, traceUrl, loadOlder: () => older.current() };
}
