/** The timeline as a list, for screen readers: the newest first, of any length. */
import { useSignal } from "@preact/signals";
import { Component } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { RoomRecord } from "../../../../shared/api/rooms.ts";
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { Clock, countText, Foreign, spanText } from "../../components/text.tsx";
import { Virtual } from "../../components/virtual.tsx";
import { ItemState, pathOf } from "./detail.tsx";
import { upTo } from "./held.ts";
import { MAX_ITEMS } from "./items.ts";

interface ListProps {
  /** Ordered by their begin. */
  items: readonly TimelineItem[];
  room: RoomRecord;
  /** Changes with each update, also when older items are loaded. */
  version: number;
  hasOlder: boolean;
  loadOlder(): void;
}

export function List({ items, room, version, hasOlder, loadOlder }: ListProps) {
  const place = useRef<HTMLElement>(null);
  /** Begin of the newest item that the user has seen, while the user has scrolled down. */
  const heldAt = useSignal<string | null>(null);
  const held = upTo(items, heldAt.value);
  const rows = useMemo(() => held.toReversed(), [held]);
  const fresh = items.length - held.length;
  // A loaded page may contain no item of the displayed kind.
  useEffect(() => {
    const { current: box } = place;
    if (!box || !hasOlder) return;
    if (box.scrollHeight - box.scrollTop - box.clientHeight < box.clientHeight) loadOlder();
  }, [version, hasOlder]);
  return (
    <div class="timeline-list">
      {fresh > 0 ? (
        <p class="fresh">
          <button type="button" class="button" onClick={() => place.current?.scrollTo({ top: 0 })}>
            {countText(fresh)} new
          </button>
        </p>
      ) : null}
      <Virtual
        place={place}
        label="Events, newest first"
        rows={rows}
        onTop={(isTop) => {
          if (isTop) heldAt.value = null;
          else heldAt.value ??= items.at(-1)?.at ?? null;
        }}
        onNearEnd={loadOlder}
        head={
          <tr>
            {["When", "Who", "What", "To", "Outcome", "Took"].map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        }
        row={(item, n, top) => (
          <Row key={item.seq ?? `${item.type} ${item.at}`} item={item} n={n} top={top} room={room} />
        )}
      />
      <p class="muted">
        {hasOlder
          ? `${countText(items.length)} loaded. Scroll for more.`
          : items.length >= MAX_ITEMS
            ? `The newest ${countText(MAX_ITEMS)} are loaded: the audit has all of them.`
            : `All ${countText(items.length)} are loaded.`}
      </p>
    </div>
  );
}

interface RowProps {
  item: TimelineItem;
  n: number;
  top: { top: string };
  room: RoomRecord;
}

/** Items are immutable: a row is re-rendered only if it moves. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate({ item, n, top }: RowProps): boolean {
    const { props } = this;
    return item !== props.item || n !== props.n || top.top !== props.top.top;
  }

  override render({ item, n, top, room }: RowProps) {
    return (
      <tr style={top} aria-rowindex={n + 2}>
        <td class="when">
          <a data-row class="whole" href={pathOf(item, room)}>
            <Clock at={item.at} />
          </a>
        </td>
        <td class="who">
          {item.agent_id === null ? <span class="muted">{item.lane}</span> : <Foreign text={item.agent_id} most={60} />}
        </td>
        <td class="what">
          <Foreign text={item.title} mono={item.type === "command"} />
        </td>
        <td class="to">{item.to.length > 0 ? <Foreign text={item.to.join(", ")} most={80} /> : null}</td>
        <td class="outcome">
          <ItemState item={item} />
        </td>
        <td class="took num">{tookText(item)}</td>
      </tr>
    );
  }
}

function tookText({ kind, at, until }: TimelineItem): string {
  if (kind === "mark") return "–";
  return until === null ? "running" : spanText(Date.parse(until) - Date.parse(at));
}
