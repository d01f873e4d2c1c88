/**
 * A list of any length with only the visible rows in the page: rows of one height, in a separate scrolling element. A row keeps its element
 * while it is near, so that the focus stays in place.
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { seenRows } from "./seen-rows.ts";

/** As virtual.css has them. */
const WIDE_PX = 32;
const NARROW_PX = 54;
const NARROW = matchMedia("(max-width: 720px)");
/** Height besides the rows if they are few: the head, which a narrow list lacks, and the border. */
const WIDE_AROUND_PX = 32;
const NARROW_AROUND_PX = 4;
/** Distance from the end at which more rows are requested. */
const NEAR_END_ROWS = 60;

export function Virtual<T>({
  rows,
  label,
  head,
  row,
  onTop,
  onNearEnd,
  place,
}: {
  rows: readonly T[];
  label: string;
  head: ComponentChildren;
  /** A `tr` with its own key, at this position. */
  row: (each: T, index: number, place: { top: string }) => ComponentChildren;
  onTop?: (isTop: boolean) => void;
  onNearEnd?: () => void;
  place?: RefObject<HTMLElement | null>;
}) {
  const own = useRef<HTMLElement>(null);
  const ref = place ?? own;
  const isNarrow = useSignal(NARROW.matches);
  const rowPx = isNarrow.value ? NARROW_PX : WIDE_PX;
  const seen = useSignal({ from: 0, to: 0 });
  const count = rows.length;
  const look = () => {
    const box = ref.current;
    if (!box) return;
    const before = seen.peek();
    const next = seenRows({ topPx: box.scrollTop, heightPx: box.clientHeight, rowPx, count }, before);
    if (next.from !== before.from || next.to !== before.to) {
      seen.value = next;
      requestAnimationFrame(() => latest.current());
    }
    onTop?.(box.scrollTop < rowPx);
    if (next.to >= count - NEAR_END_ROWS) onNearEnd?.();
  };
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => latest.current(), [count, rowPx]);
  useEffect(() => {
    const change = () => {
      isNarrow.value = NARROW.matches;
    };
    NARROW.addEventListener("change", change);
    return () => NARROW.removeEventListener("change", change);
  }, []);
  useEffect(() => {
    const box = ref.current;
    if (!box) return;
    const sizes = new ResizeObserver(() => latest.current());
    sizes.observe(box);
    return () => sizes.disconnect();
  }, []);
  const { from } = seen.value;
  const to = Math.min(seen.value.to, count);
  return (
    <section
      ref={ref}
      class="virtual"
      style={{ maxHeight: `${count * rowPx + (isNarrow.value ? NARROW_AROUND_PX : WIDE_AROUND_PX)}px` }}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
      tabIndex={0}
      onScroll={() => latest.current()}
    >
      <table aria-rowcount={count + 1}>
        <thead>{head}</thead>
        <tbody style={{ height: `${count * rowPx}px` }}>
          {rows.slice(from, to).map((each, n) => row(each, from + n, { top: `${(from + n) * rowPx}px` }))}
        </tbody>
      </table>
    </section>
  );
}
