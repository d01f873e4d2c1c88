/** A plot: one number per day, drawn in the page's colours, and redrawn when these or its width change. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import plotStyle from "uplot/dist/uPlot.min.css" with { type: "text" };
import { addStyle } from "../components/style.ts";
import { dayAt, dayText, numberText } from "./numbers.ts";

addStyle(plotStyle);

/** Minimum scale, so that near-zero values look like that. */
const LEAST_SCALE = 0.01;
const HEIGHT_PX = 130;
const BAR_SHARE = 0.7;
const BAR_MOST_PX = 40;
const DAY_S = 86_400;
/** Width of a day's number, with a margin. */
const LABEL_PX = 28;
const STEPS_DAYS = [1, 2, 5];

export interface PlotLine {
  values: readonly (number | null)[];
  name: string;
  look: "bars" | "line" | "dashed";
}

export function Plot({
  days,
  lines,
  unit,
  words,
}: {
  days: readonly string[];
  lines: readonly PlotLine[];
  unit: string;
  /** The plot's text for screen readers. */
  words: string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const at = useSignal<number | null>(null);
  const data = JSON.stringify([days, lines]);
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const plot = new uPlot(
      optionsOf(box, lines, (index) => (at.value = index)),
      dataOf(days, lines),
      box,
    );
    const widths = new ResizeObserver(() => {
      const width = box.clientWidth;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT_PX });
    });
    widths.observe(box);
    const draw = () => plot.redraw();
    // The colour scheme can change in the system or in the rail.
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    const chosen = new MutationObserver(draw);
    chosen.observe(document.documentElement, { attributeFilter: ["data-colours"] });
    return () => {
      widths.disconnect();
      chosen.disconnect();
      dark.removeEventListener("change", draw);
      plot.destroy();
    };
  }, [data]);
  const n = at.value;
  return (
    <>
      <div ref={place} class="plot" role="img" aria-label={words} />
      <p class="plot-said" aria-hidden="true">
        {n === null || days[n] === undefined
          ? words
          : `${dayText(days[n])}: ${lines
              .flatMap(({ values, name }) => {
                const value = values[n];
                return value === null || value === undefined
                  ? []
                  : [`${lines.length > 1 ? `${name} ` : ""}${numberText(value)}`];
              })
              .join(", ")} ${unit}`}
      </p>
    </>
  );
}

const dataOf = (days: readonly string[], lines: readonly PlotLine[]): uPlot.AlignedData => [
  days.map(dayAt),
  ...lines.map(({ values }) => [...values]),
];

/** Short, even for near-zero values. */
const axisText = (value: number) => (value > 0 && value < 0.01 ? value.toPrecision(1) : numberText(value));

/** A colour of the style sheet for a canvas: resolved by the element that uses it. */
function colourOf(box: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  box.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** The days whose labels fit beneath the plot. */
function labelledDays(days: ArrayLike<number>, widthPx: number): number[] {
  const room = widthPx / Math.max(1, days.length);
  const step = STEPS_DAYS.find((each) => each * room >= LABEL_PX) ?? 10;
  return Array.from(days).filter((_, n) => n % step === 0);
}

function optionsOf(box: HTMLElement, lines: readonly PlotLine[], point: (index: number | null) => void): uPlot.Options {
  const colour = (name: string) => () => colourOf(box, name);
  const font = `11px ${getComputedStyle(box).fontFamily}`;
  const axis: uPlot.Axis = {
    stroke: colour("muted"),
    font,
    grid: { stroke: colour("line"), width: 1 },
    ticks: { show: false },
  };
  const bars = uPlot.paths.bars?.({ size: [BAR_SHARE, BAR_MOST_PX] });
  return {
    width: Math.max(box.clientWidth, 200),
    height: HEIGHT_PX,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      // Half a day of margin on either side, so that the first and last bars are complete.
      x: { range: (_, first, last) => [first - DAY_S / 2, last + DAY_S / 2] },
      y: { range: (_, __, most) => [0, most > 0 ? Math.max(most * 1.08, LEAST_SCALE) : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        splits: (plot) => labelledDays(plot.data[0], plot.width),
        values: (_, splits) => splits.map((at) => String(new Date(at * 1000).getUTCDate())),
      },
      { ...axis, size: 52, values: (_, splits) => splits.map(axisText) },
    ],
    series: [
      {},
      ...lines.map(
        ({ look, name }): uPlot.Series => ({
          label: name,
          stroke: colour("accent"),
          width: look === "bars" ? 0 : 2,
          points: { show: false },
          ...(look === "bars" && bars ? { fill: colour("accent"), paths: bars } : {}),
          ...(look === "dashed" ? { dash: [4, 4] } : {}),
        }),
      ),
    ],
    hooks: { setCursor: [(plot) => point(plot.cursor.idx ?? null)] },
  };
}
