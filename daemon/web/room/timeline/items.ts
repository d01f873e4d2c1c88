/** Owns the items of a room's timeline that a page has: those that were asked for and those that came since, in order, so many at most. */
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { pair } from "../../../../shared/timeline/pair.ts";
import type { Lying } from "./layout.ts";

/** Beyond it the oldest go; they can be asked for again. */
export const MOST_ITEMS = 50_000;

export interface LaidItem extends Lying {
  item: TimelineItem;
}

export interface LaneItems {
  /** The agent's name, or that of a lane that is no agent's. */
  name: string;
  isAgent: boolean;
  items: LaidItem[];
  /** The latest end of those up to each. */
  reach: number[];
}

/** In the order in which they are shown beneath the agents. */
const OTHER_LANES = ["egress", "ports", "room"] as const;
const LANE_NAMES = { egress: "network", ports: "ports", room: "room" } as const;

export interface Chosen {
  agent: string;
  type: string;
}

/** Items by when they began, each once. */
export class Items {
  all: TimelineItem[] = [];
  readonly #known = new Set<number>();

  /** Returns how many were not known. */
  add(more: readonly TimelineItem[]): number {
    const fresh = more.filter(({ seq }) => seq === null || !this.#known.has(seq));
    if (fresh.length === 0) return 0;
    for (const { seq } of fresh) if (seq !== null) this.#known.add(seq);
    const all = [...this.all, ...fresh].sort(({ at: one }, { at: other }) => (one < other ? -1 : one > other ? 1 : 0));
    for (const { seq } of all.splice(0, Math.max(0, all.length - MOST_ITEMS)))
      if (seq !== null) this.#known.delete(seq);
    this.all = all;
    return fresh.length;
  }

  /** Puts others in the place of those that have no record yet. */
  replaceOpen(open: readonly TimelineItem[]): void {
    this.all = this.all.filter(({ seq }) => seq !== null);
    this.add(open);
  }
}

/** Whether something went wrong, as far as a record says. */
export const isBad = ({ outcome, type, exit_code }: TimelineItem): boolean =>
  outcome !== "success" || type === "refusal" || (exit_code !== null && exit_code !== 0);

export const looks = (item: TimelineItem): string =>
  `${item.type === "wait" || item.type === "standby" ? "wait" : item.type === "barrier" ? "barrier" : "plain"}${isBad(item) ? " bad" : ""}`;

const laidOnce = new WeakMap<TimelineItem, LaidItem>();

/** What goes on has no end yet. */
export function layable(item: TimelineItem): LaidItem {
  let laid = laidOnce.get(item);
  if (!laid) {
    const from = Date.parse(item.at);
    const end = item.until === null ? Number.POSITIVE_INFINITY : Math.max(from, Date.parse(item.until));
    laid = { from, to: item.kind === "mark" ? from : end, look: looks(item), item };
    laidOnce.set(item, laid);
  }
  return laid;
}

export function chosenOf(items: readonly TimelineItem[], { agent, type }: Chosen): TimelineItem[] {
  const joined = pair(items);
  return agent || type
    ? joined.filter((item) => (!agent || item.agent_id === agent) && (!type || item.type === type))
    : joined;
}

export function lanesOf(items: readonly TimelineItem[]): LaneItems[] {
  const lanes = new Map<string, LaneItems>();
  for (const item of items) {
    const isAgent = item.lane === "agent" && item.agent_id !== null;
    const key = isAgent ? `agent ${item.agent_id}` : item.lane;
    let lane = lanes.get(key);
    if (!lane) {
      const name = isAgent ? (item.agent_id ?? "") : LANE_NAMES[item.lane === "agent" ? "room" : item.lane];
      lane = { name, isAgent, items: [], reach: [] };
      lanes.set(key, lane);
    }
    const laid = layable(item);
    lane.items.push(laid);
    lane.reach.push(Math.max(lane.reach.at(-1) ?? Number.NEGATIVE_INFINITY, laid.to));
  }
  const others = OTHER_LANES.flatMap((name) => lanes.get(name) ?? []);
  const agents = [...lanes.values()].filter(({ isAgent }) => isAgent);
  return [...agents.sort((one, other) => one.name.localeCompare(other.name)), ...others];
}
