/** A room's timeline: a lane for each agent, time to the right, now at the edge; or the same as a list. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { Empty, Line, Loading, Trouble } from "../../components/parts.tsx";
import { addStyle } from "../../components/style.ts";
import { nowMs } from "../../components/text.tsx";
import { endOf } from "../load.ts";
import type { TabProps } from "../tab.ts";
import { Controls } from "./controls.tsx";
import { useTimeline } from "./data.ts";
import { Detail } from "./detail.tsx";
import { chosenOf, type LaidItem, layable } from "./items.ts";
import { Lanes } from "./lanes.tsx";
import type { Window } from "./layout.ts";
import { List } from "./list.tsx";
import { foldedScale, LEAST_GAP_MS, type Scale, STRAIGHT } from "./scale.ts";
import { Strip } from "./strip.tsx";
import timelineStyle from "./timeline.css" with { type: "text" };
import { lookAt, type View, viewOf } from "./view.ts";

addStyle(timelineStyle);

/** Interval at which the right edge advances with time. */
const TICK_MS = 250;
/** Share of the window, so that neither the newest nor the oldest events are at the very edge. */
const AHEAD = 0.02;

export default function Timeline({ room }: TabProps) {
  const view = viewOf();
  const data = useTimeline(room);
  const version = data.version.value;
  const chosen = useSignal<TimelineItem | null>(null);
  const drawn = useMemo(() => chosenOf(data.items, view), [version, view.agent, view.type]);
  const { paired: items, laid, lanes } = drawn;
  const agents = useMemo(() => [...data.items.agents].sort(), [version]);
  const { box, width } = useWidth(data.isLoaded.value && !view.isList);
  // The time axis stops at the end of the room.
  const now = Math.min(useNow(view, items, width), Date.parse(endOf(room) ?? "") || Number.POSITIVE_INFINITY);
  const { scale, whole, window } = useMemo(
    () => partOf(view, laid, now, width),
    [laid, now, width, view.at, view.span, view.isFolded],
  );
  const oldest = laid[0] ? scale.place(laid[0].from) : Number.POSITIVE_INFINITY;
  const wantsOlder = data.hasOlder.value && window.from < oldest;
  useEffect(() => {
    if (wantsOlder) data.loadOlder();
  }, [wantsOlder, version]);
  if (data.problem.value && !data.isLoaded.value) return <Trouble problem={data.problem.value} again={data.again} />;
  if (!data.isLoaded.value) return <Loading rows={8} />;
  const seen = view.isList ? items.filter(({ at }) => view.at === null || Date.parse(at) <= view.at) : items;
  return (
    <>
      {data.problem.value ? <Trouble problem={data.problem.value} again={data.again} /> : null}
      <Controls view={view} agents={agents} came={data.came} now={now} hasEnded={endOf(room) !== null} />
      {seen.length === 0 && data.hasOlder.value ? (
        <Loading rows={8} />
      ) : data.items.all.length === 0 && room.state !== "active" ? (
        <Empty title="No events of this room are kept any more." />
      ) : data.items.all.length === 0 ? (
        <Empty title="Nothing has happened in this room yet.">
          <p>Start with a sandbox, a command or a message:</p>
          <Line words={["sandbox", "create", room.room_id, "worker"]} />
        </Empty>
      ) : seen.length === 0 ? (
        <Empty title="No matching events." />
      ) : view.isList ? (
        <List items={seen} room={room} version={version} hasOlder={data.hasOlder.value} loadOlder={data.loadOlder} />
      ) : (
        <>
          <div
            class="timeline"
            ref={box}
            data-items={data.items.all.length}
            data-newest={data.items.all.at(-1)?.seq ?? 0}
          >
            <Strip
              items={laid}
              scale={scale}
              whole={whole}
              window={window}
              move={(to) => lookAt(to === null ? null : scale.moment(to))}
            />
            <Lanes
              lanes={lanes}
              scale={scale}
              window={window}
              room={room}
              chosen={chosen.value}
              choose={(item) => {
                chosen.value = item;
              }}
            />
          </div>
          <Detail item={chosen.value} room={room} traceUrl={data.traceUrl.value} />
        </>
      )}
    </>
  );
}

/** The visible part of the known time. */
function partOf(
  view: View,
  laid: readonly LaidItem[],
  now: number,
  width: number,
): { scale: Scale; whole: { from: number; to: number }; window: Window } {
  const scale = view.isFolded ? foldedScale(laid, now) : STRAIGHT;
  const first = scale.place(Math.min(now, laid[0]?.from ?? now));
  const edge = scale.place(view.at ?? now);
  const ms = Number.isFinite(view.ms) ? view.ms : (Math.max(1000, edge - first) * (1 + AHEAD)) / (1 - AHEAD);
  const to = edge + (view.at === null ? ms * AHEAD : 0);
  return {
    scale,
    whole: { from: Math.min(first, to - ms), to: scale.place(now) },
    window: { from: to - ms, to, width },
  };
}

/** The pixels that tracks have. */
function useWidth(isThere: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(900);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      const track = element.querySelector(".axis > div");
      if (track && track.clientWidth > 0) width.value = track.clientWidth;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [isThere]);
  return { box, width: width.value };
}

/**
 * The current time, as often as its movement is visible. If there are no open spans and idle time is folded, the edge does not move, nor
 * does it in a hidden tab.
 */
function useNow(view: View, items: readonly TimelineItem[], width: number): number {
  const now = useSignal(Date.now());
  const newest = items.at(-1);
  const isIdle = () => {
    const ends = items.slice(-200).map((item) => layable(item).to);
    return Date.now() - Math.max(0, ...ends) > LEAST_GAP_MS * 2;
  };
  useEffect(() => {
    now.value = Date.now();
    if (view.at !== null || isIdle()) return;
    const perPixel = (Number.isFinite(view.ms) ? view.ms : 900_000) / width;
    const timer = setInterval(
      () => {
        if (document.hidden) return;
        now.value = Date.now();
        if (isIdle()) clearInterval(timer);
      },
      Math.max(TICK_MS, perPixel),
    );
    return () => clearInterval(timer);
  }, [view.at, view.span, newest, width]);
  return Math.max(now.value, view.at === null && isIdle() ? nowMs.value : 0);
}
