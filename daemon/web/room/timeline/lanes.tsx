/** Draws the lanes of a room's timeline: only the items in the window. */

import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { clockText, Foreign, spanText, visible } from "../../components/text.tsx";
import { addressOf, agentPath } from "../../data/paths.ts";
import type { LaidItem, LaneItems } from "./items.ts";
import { firstReaching, layLane, type Placed, ticksOf, type Window } from "./layout.ts";
import type { Scale } from "./scale.ts";

/** Height of a row, and the margin around the rows, in pixels. */
const ROW = 24;
const EDGE = 8;
const TICK_PIXELS = 90;
/** Width of a time label next to its tick. */
const TIME_PIXELS = 64;

export interface Drawn {
  lanes: readonly LaneItems[];
  scale: Scale;
  window: Window;
  room: RoomRecord;
  chosen: TimelineItem | null;
  choose(item: TimelineItem): void;
}

export function Lanes({ lanes, scale, window, room, chosen, choose }: Drawn) {
  return (
    <>
      {lanes.map((lane) => (
        <Lane key={`${lane.isAgent} ${lane.name}`} {...{ lane, scale, window, room, chosen, choose }} />
      ))}
      <Axis scale={scale} window={window} />
    </>
  );
}

function Lane({ lane, scale, window, room, chosen, choose }: Omit<Drawn, "lanes"> & { lane: LaneItems }) {
  const from = scale.moment(window.from);
  const placed = layLane(lane.items.slice(firstReaching(lane.reach, from)), scale, window);
  const rows = 1 + Math.max(0, ...placed.map(({ row }) => row));
  return (
    <div class="lane">
      <b>
        {lane.isAgent ? (
          <a href={agentPath(addressOf(room), lane.name)}>
            <Foreign text={lane.name} most={40} />
          </a>
        ) : (
          lane.name
        )}
      </b>
      <div class="track" style={{ height: `${rows * ROW + EDGE * 2}px` }}>
        {placed.map((each) => (
          <Piece
            key={each.item.item.seq ?? `${each.item.item.type} ${each.item.item.at}`}
            of={each}
            width={window.width}
            isChosen={chosen !== null && each.item.item.seq === chosen.seq}
            choose={choose}
          />
        ))}
      </div>
    </div>
  );
}

/** Tooltip and screen reader text. */
export function wordsOf({ title, at, until, kind, agent_id }: TimelineItem, count = 1): string {
  const took = kind === "span" ? `, ${until === null ? "running" : spanText(Date.parse(until) - Date.parse(at))}` : "";
  const more = count > 1 ? ` and ${count - 1} more` : "";
  return visible(`${clockText(at)} ${agent_id ?? ""} ${title}${took}${more}`);
}

interface PieceProps {
  of: Placed<LaidItem>;
  width: number;
  isChosen: boolean;
  choose(item: TimelineItem): void;
}

function Piece({ of: { left, width, row, item: laid, count }, width: whole, isChosen, choose }: PieceProps) {
  const { item, look } = laid;
  const isMark = item.kind === "mark";
  const words = wordsOf(item, count);
  // The label of an item that starts before the window is placed within it.
  const [begins, ends] = [Math.max(left, -1), Math.min(left + width, whole + 1)];
  const style = isMark
    ? { left: `${left - 5}px`, top: `${EDGE + 5}px` }
    : { left: `${begins}px`, width: `${Math.max(3, ends - begins)}px`, top: `${EDGE + row * ROW + 2}px` };
  return (
    <button
      type="button"
      class={`${isMark ? "mark" : "span"} ${look}${isChosen ? " chosen" : ""}${item.until === null ? " open" : ""}`}
      style={style}
      tabIndex={-1}
      data-row
      aria-label={words}
      title={words}
      onClick={() => choose(item)}
      onFocus={() => choose(item)}
    >
      {!isMark && ends - begins > 40 ? visible(count > 1 ? `${count} × ${item.title}` : item.title) : null}
    </button>
  );
}

function Axis({ scale, window }: { scale: Scale; window: Window }) {
  const perPixel = (window.to - window.from) / window.width;
  const folds = scale.folds
    .map(({ from, to }) => ({
      from,
      to,
      left: (scale.place(from) - window.from) / perPixel,
      right: (scale.place(to) - window.from) / perPixel,
    }))
    .filter(({ left, right }) => right > 0 && left < window.width);
  return (
    <div class="axis" aria-hidden="true">
      <span />
      <div>
        {folds.map(({ from, to, left, right }) => (
          <i
            key={from}
            class="fold"
            style={{ left: `${left}px`, width: `${Math.max(2, right - left)}px` }}
            title={`nothing for ${spanText(to - from)}`}
          >
            {right - left > 34 ? spanText(to - from) : null}
          </i>
        ))}
        {ticksOf(scale, window, TICK_PIXELS).map(({ moment, left }) => (
          <span
            key={moment}
            class={left + TIME_PIXELS > window.width ? "tick-at ends" : "tick-at"}
            style={{ left: `${left}px` }}
          >
            {clockText(moment)}
          </span>
        ))}
      </div>
    </div>
  );
}
