/** The strip above the lanes: activity over the whole known time, and the window's position in it. */
import { useMemo, useRef } from "preact/hooks";
import { clockText } from "../../components/text.tsx";
import { densityOf, type Lying } from "./layout.ts";
import type { Scale } from "./scale.ts";

const PARTS = 200;
const HEIGHT = 26;

interface StripProps {
  items: readonly Lying[];
  scale: Scale;
  /** Positions on the axis: of all loaded time, and of the window. */
  whole: { from: number; to: number };
  window: { from: number; to: number };
  /** Moves the window's right edge to a position; null: now. */
  move(to: number | null): void;
}

export function Strip({ items, scale, whole, window, move }: StripProps) {
  const strip = useRef<HTMLDivElement>(null);
  const length = Math.max(1, whole.to - whole.from);
  // Of the whole known time, not only of the window.
  const outline = useMemo(
    () => outlineOf(densityOf(items, scale, whole.from, whole.to, PARTS)),
    [items, scale, whole.from, whole.to],
  );
  const [left, right] = [window.from, window.to].map((at) =>
    Math.min(100, Math.max(0, ((at - whole.from) / length) * 100)),
  ) as [number, number];
  const size = window.to - window.from;
  const to = (place: number) => move(place >= whole.to ? null : Math.max(whole.from + size, place));
  const drag = (event: PointerEvent) => {
    const box = strip.current?.getBoundingClientRect();
    if (!box || (event.type === "pointermove" && event.buttons !== 1)) return;
    // A drag continues beyond the strip's edges.
    if (event.type === "pointerdown") strip.current?.setPointerCapture(event.pointerId);
    const middle = whole.from + ((event.clientX - box.left) / box.width) * length;
    to(middle + size / 2);
  };
  const step = (event: KeyboardEvent) => {
    const by = {
      ArrowLeft: -size / 4,
      ArrowRight: size / 4,
      Home: Number.NEGATIVE_INFINITY,
      End: Number.POSITIVE_INFINITY,
    }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    to(window.to + by);
  };
  return (
    <div
      ref={strip}
      class="strip"
      role="slider"
      tabIndex={0}
      aria-label="Visible part of the timeline"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(right)}
      aria-valuetext={`up to ${clockText(scale.moment(window.to))}`}
      onPointerDown={drag}
      onPointerMove={drag}
      onKeyDown={step}
    >
      <svg viewBox={`0 0 ${PARTS} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path d={outline} />
      </svg>
      <i style={{ left: `${left}%`, width: `${Math.max(0.5, right - left)}%` }} />
    </div>
  );
}

function outlineOf(heights: readonly number[]): string {
  const line = heights.map((height, n) => {
    const top = (HEIGHT - height * (HEIGHT - 4)).toFixed(1);
    return `L${n} ${top} L${n + 1} ${top}`;
  });
  return `M0 ${HEIGHT} ${line.join(" ")} L${PARTS} ${HEIGHT} Z`;
}
