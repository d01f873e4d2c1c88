/** A long list of lines of one height, with only the visible ones in the page. It follows its end unless the user has scrolled up. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { countText } from "./text.tsx";

/** As in agent.css. */
export const LINE_PX = 18;
/** Room for a scrollbar below a few lines. */
const SCROLLBAR_PX = 18;
/** Rendered around the visible lines, so that scrolling shows no gap. */
const AROUND = 20;

export function Lines({
  count,
  version,
  label,
  follows,
  came,
  children,
}: {
  count: number;
  /** Changes with the contents. */
  version: number;
  label: string;
  follows: boolean;
  /** Total count, if lines are appended: lines that arrive while the user has scrolled up are counted. */
  came?: number;
  children: (index: number) => ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = useSignal(400);
  const isAtEnd = useSignal(follows);
  const before = useRef(0);
  if (came !== undefined && isAtEnd.value) before.current = came;
  const fresh = came === undefined ? 0 : came - before.current;
  useEffect(() => {
    const { current } = box;
    if (!current) return;
    const watcher = new ResizeObserver(() => {
      height.value = current.clientHeight;
    });
    watcher.observe(current);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { current } = box;
    if (current && isAtEnd.value) current.scrollTop = current.scrollHeight;
  }, [version, count]);
  const first = Math.max(0, Math.floor(top.value / LINE_PX) - AROUND);
  const last = Math.min(count, Math.ceil((top.value + height.value) / LINE_PX) + AROUND);
  const toEnd = () => {
    isAtEnd.value = true;
    const { current } = box;
    if (current) current.scrollTop = current.scrollHeight;
  };
  return (
    <div class="lines-place">
      <div
        ref={box}
        class="lines"
        style={{ height: `min(60vh, 560px, ${Math.min(count, 100) * LINE_PX + SCROLLBAR_PX}px)` }}
        role="log"
        aria-live="off"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and is scrolled by keys
        tabIndex={0}
        onScroll={({ currentTarget }) => {
          top.value = currentTarget.scrollTop;
          const below = currentTarget.scrollHeight - currentTarget.scrollTop - currentTarget.clientHeight;
          isAtEnd.value = follows && below < LINE_PX * 2;
        }}
      >
        <div class="lines-all" style={{ height: `${count * LINE_PX}px` }}>
          <div class="lines-seen" style={{ transform: `translateY(${first * LINE_PX}px)` }}>
            {Array.from({ length: Math.max(0, last - first) }, (_, n) => children(first + n))}
          </div>
        </div>
      </div>
      {follows && !isAtEnd.value ? (
        <button type="button" class="button lines-end" onClick={toEnd}>
          {fresh > 0 ? `Continue: ${countText(fresh)} new` : "Continue at the end"}
        </button>
      ) : null}
    </div>
  );
}
