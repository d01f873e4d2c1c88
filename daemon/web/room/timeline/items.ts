/** The items of a room's timeline in a page: loaded and received ones, in order, bounded in number. */
import type { TimelineItem } from "../../../../shared/timeline/item.ts";
import { pair } from "../../../../shared/timeline/pair.ts";
import type { Lying } from "./layout.ts";

/** Above this limit the oldest are dropped; they can be loaded again. */
export const MAX_ITEMS = 50_000;

export interface LaidItem extends Lying {
  item: TimelineItem;
}

export interface LaneItems {
  /** The agent's name, or the name of a lane for other items. */
  name: string;
  isAgent: boolean;
  items: LaidItem[];
  /** For each item, the latest end among it and its predecessors. */
  reach: number[];
}

/** In display order, below the agents. */
const OTHER_LANES = ["egress", "ports", "room"] as const;
const LANE_NAMES = { egress: "network", ports: "ports", room: "room" } as const;

export interface Chosen {
  agent: string;
  type: string;
}

/** Items ordered by their begin, without duplicates. */
export class Items {
  /** Agents with at least one item so far. */
  readonly agents = new Set<string>();
  #all: readonly TimelineItem[] = [];
  #paired: readonly TimelineItem[] | null = null;
  #laid: readonly LaidItem[] | null = null;
  #lanes: readonly LaneItems[] | null = null;
  readonly #known = new Set<number>();

  get all(): readonly TimelineItem[] {
    return this.#all;
  }

  /** With standbys as spans. */
  get paired(): readonly TimelineItem[] {
    this.#paired ??= pair(this.#all);
    return this.#paired;
  }

  /** Of those. */
  get laid(): readonly LaidItem[] {
    this.#laid ??= this.paired.map(layable);
    return this.#laid;
  }

  /** Of those. */
  get lanes(): readonly LaneItems[] {
    this.#lanes ??= lanesOf(this.laid);
    return this.#lanes;
  }

  #set(all: readonly TimelineItem[]): void {
    this.#all = all;
    this.#paired = null;
    this.#laid = null;
    this.#lanes = null;
  }

  /** Returns the number of new items. */
  add(more: readonly TimelineItem[]): number {
    const fresh = more.filter(({ seq }) => seq === null || !this.#known.has(seq));
    if (fresh.length === 0) return 0;
    for (const { seq, agent_id } of fresh) {
      if (seq !== null) this.#known.add(seq);
      if (agent_id !== null) this.agents.add(agent_id);
    }
    const all = merged(this.#all, fresh.sort(byTime));
    for (const { seq } of all.splice(0, Math.max(0, all.length - MAX_ITEMS))) if (seq !== null) this.#known.delete(seq);
    this.#set(all);
    return fresh.length;
  }

  /** Items without a record yet. */
  get open(): readonly TimelineItem[] {
    return this.#all.filter(({ seq }) => seq === null);
  }

  /** Replaces the items without a record. Returns whether they differ. */
  replaceOpen(open: readonly TimelineItem[]): boolean {
    if (textOf(open) === textOf(this.open)) return false;
    this.#set(this.#all.filter(({ seq }) => seq !== null));
    this.add(open);
    return true;
  }
}

const textOf = (open: readonly TimelineItem[]): string =>
  open
    .map(({ at, title, to, ...item }) => `${at} ${keyOf(item)} ${title} ${to}`)
    .sort()
    .join("\n");

/** An open span has the same key as its record. */
const keyOf = ({ agent_id, type, ref }: Pick<TimelineItem, "agent_id" | "type" | "ref">): string =>
  `${agent_id} ${type} ${ref?.type} ${ref?.id}`;

/** Spans that are still open after more records. */
export function goesOn(open: readonly TimelineItem[], more: readonly TimelineItem[]): TimelineItem[] {
  const ended = new Set(more.filter(({ kind }) => kind === "span").map(keyOf));
  return open.filter((item) => !ended.has(keyOf(item)));
}

const byTime = ({ at: one }: TimelineItem, { at: other }: TimelineItem) => (one < other ? -1 : one > other ? 1 : 0);

/** Merges two lists in time order: new items are newer than nearly all existing ones, or older than all of them. */
function merged(there: readonly TimelineItem[], fresh: readonly TimelineItem[]): TimelineItem[] {
  const [first, last] = [fresh[0] as TimelineItem, fresh.at(-1) as TimelineItem];
  const [oldest] = there;
  if (oldest && last.at < oldest.at) return fresh.concat(there);
  let from = there.length;
  while (from > 0 && (there[from - 1] as TimelineItem).at > first.at) from--;
  return there.slice(0, from).concat([...there.slice(from), ...fresh].sort(byTime));
}

/** Whether something failed, according to the record. */
export const isBad = ({ outcome, type, exit_code }: TimelineItem): boolean =>
  outcome !== "success" || type === "refusal" || (exit_code !== null && exit_code !== 0);

/** The outcome of an item; null for a plain success. */
export function stateOf(item: TimelineItem): readonly ["bad" | "busy" | "wait", string] | null {
  if (isBad(item)) return ["bad", item.exit_code ? `exit ${item.exit_code}` : item.outcome];
  if (item.kind === "mark" || item.until !== null) return null;
  return item.type === "command" ? ["busy", "running"] : ["wait", item.type === "standby" ? "standby" : "waiting"];
}

export const looks = (item: TimelineItem): string =>
  `${item.type === "wait" || item.type === "standby" ? "wait" : item.type === "barrier" ? "barrier" : "plain"}${isBad(item) ? " bad" : ""}`;

/** Its position is cached with it: with tens of thousands of items, each is needed at every draw. */
interface PlacedItem extends TimelineItem {
  laid?: LaidItem;
}

export function layable(item: PlacedItem): LaidItem {
  // A copied item still carries its original's layout.
  if (item.laid?.item !== item) item.laid = lay(item);
  return item.laid;
}

/** An open span has no end yet. */
function lay(item: TimelineItem): LaidItem {
  const from = Date.parse(item.at);
  const end = item.until === null ? Number.POSITIVE_INFINITY : Math.max(from, Date.parse(item.until));
  return { from, to: item.kind === "mark" ? from : end, look: looks(item), item };
}

/** The items of an agent, of a type, or of both, as they are drawn. */
export function chosenOf(items: Items, { agent, type }: Chosen): Pick<Items, "paired" | "laid" | "lanes"> {
  if (!agent && !type) return { paired: items.paired, laid: items.laid, lanes: items.lanes };
  const paired = items.paired.filter((item) => (!agent || item.agent_id === agent) && (!type || item.type === type));
  const laid = paired.map(layable);
  return { paired, laid, lanes: lanesOf(laid) };
}

/** The lanes of the items, in display order. */
export function lanesOf(all: readonly LaidItem[]): LaneItems[] {
  const agents = new Map<string, LaneItems>();
  const others = new Map<string, LaneItems>();
  for (const laid of all) {
    const { lane: of, agent_id } = laid.item;
    const isAgent = of === "agent" && agent_id !== null;
    const [among, key] = isAgent ? [agents, agent_id] : [others, of === "agent" ? "room" : of];
    let lane = among.get(key);
    if (!lane) {
      lane = { name: isAgent ? key : LANE_NAMES[key as keyof typeof LANE_NAMES], isAgent, items: [], reach: [] };
      among.set(key, lane);
    }
    lane.items.push(laid);
    lane.reach.push(Math.max(lane.reach.at(-1) ?? Number.NEGATIVE_INFINITY, laid.to));
  }
  return [
    ...[...agents.values()].sort((one, other) => one.name.localeCompare(other.name)),
    ...OTHER_LANES.flatMap((name) => others.get(name) ?? []),
  ];
}
