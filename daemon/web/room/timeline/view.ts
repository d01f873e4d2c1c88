/** The visible part of a timeline: its span, and whether its right edge is now. Stored in the address. */
import { signal } from "@preact/signals";
import { place, setQuery } from "../../shell/router.ts";

const MINUTE = 60_000;

export const SPANS: readonly (readonly [name: string, label: string, ms: number])[] = [
  ["1m", "1 min", MINUTE],
  ["5m", "5 min", 5 * MINUTE],
  ["15m", "15 min", 15 * MINUTE],
  ["1h", "1 h", 60 * MINUTE],
  ["6h", "6 h", 360 * MINUTE],
  ["1d", "1 day", 1440 * MINUTE],
  ["all", "all", Number.POSITIVE_INFINITY],
];
const USUAL = "15m";
/** The URL is written only after the drag has rested: browsers refuse one write for every step. */
const REST_MS = 200;

/** The right edge during a drag; written to the URL once it rests. */
const moved = signal<{ path: string; at: number | null } | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

export interface View {
  span: string;
  /** How much is seen. */
  ms: number;
  /** Time at the right edge; null: now, and the edge advances with time. */
  at: number | null;
  isFolded: boolean;
  isList: boolean;
  agent: string;
  type: string;
}

/** The view of the URL, or the one about to be written to it. */
export function viewOf(): View {
  const { path, query } = place.value;
  const [span, , ms] = SPANS.find(([name]) => name === query.get("span")) ??
    SPANS.find(([name]) => name === USUAL) ?? [USUAL, "", 15 * MINUTE];
  const at = Date.parse(query.get("at") ?? "");
  const edge = moved.value;
  return {
    span,
    ms,
    at: edge?.path === path ? edge.at : Number.isNaN(at) ? null : at,
    isFolded: query.get("idle") !== "shown",
    isList: query.get("as") === "list",
    agent: query.get("agent") ?? "",
    type: query.get("type") ?? "",
  };
}

/** Takes effect immediately. */
export function lookAt(moment: number | null): void {
  moved.value = { path: place.peek().path, at: moment };
  clearTimeout(timer);
  timer = setTimeout(rest, REST_MS);
}

function rest(): void {
  const { value: edge } = moved;
  // A user who has left the page in the meantime is not brought back.
  if (edge?.path === place.peek().path) setQuery({ at: edge.at === null ? null : new Date(edge.at).toISOString() });
  moved.value = null;
}

export function zoom(by: 1 | -1): void {
  const at = SPANS.findIndex(([name]) => name === viewOf().span);
  const next = SPANS[Math.min(SPANS.length - 1, Math.max(0, at + by))];
  if (next) setQuery({ span: next[0] });
}
