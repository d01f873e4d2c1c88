/** Joins two marks of a timeline to one span: the start of a standby, and its end. Pure. */
import type { TimelineItem } from "./item.ts";
import { DESTROYED, STANDBY } from "./words.ts";

/**
 * The items, in the given order, with each standby as a span. A standby without an end among these items is a span without an end; a resume
 * without its standby stays a mark.
 */
export function pair(items: readonly TimelineItem[]): readonly TimelineItem[] {
  const inTime: { item: TimelineItem; index: number }[] = [];
  for (const [index, item] of items.entries()) if (isOfSpans(item)) inTime.push({ item, index });
  if (inTime.length === 0) return items;
  inTime.sort((a, b) => orderOf(a.item) - orderOf(b.item));
  const spans = new Map<number, TimelineItem>();
  const removed = new Set<number>();
  /** By agent: the index of its open standby. */
  const open = new Map<string, number>();
  const end = (agentId: string, at: string) => {
    const startIndex = open.get(agentId);
    if (startIndex === undefined) return false;
    spans.set(startIndex, { ...(spans.get(startIndex) as TimelineItem), until: at });
    return open.delete(agentId);
  };
  for (const { item, index } of inTime) {
    const { agent_id, at } = item;
    if (item.outcome !== "success") continue;
    if (isOf(item, "room", DESTROYED.room)) for (const each of [...open.keys()]) end(each, at);
    if (agent_id === null) continue;
    if (isOf(item, "standby", STANDBY.over)) {
      if (end(agent_id, at)) removed.add(index);
    } else if (isOf(item, "sandbox", DESTROYED.sandbox) || isOf(item, "sandbox", DESTROYED.failed)) end(agent_id, at);
    else if (item.type !== "standby") continue;
    // A standby in progress is already represented by the mark of its start, if that is among the items.
    else if (item.seq === null && open.has(agent_id)) removed.add(index);
    else {
      open.set(agent_id, index);
      spans.set(index, { ...item, kind: "span" });
    }
  }
  if (spans.size === 0 && removed.size === 0) return items;
  const joined = items.slice();
  for (const [index, span] of spans) joined[index] = span;
  return removed.size === 0 ? joined : joined.filter((_, index) => !removed.has(index));
}

/** Item types that form spans; only few of a room's items are of these types. */
const isOfSpans = ({ type }: TimelineItem) => type === "standby" || type === "sandbox" || type === "room";

const isOf = (item: TimelineItem, type: TimelineItem["type"], words: string) =>
  item.type === type && item.title.startsWith(words);

/** Sort key of a timeline item: its sequence number. An item in progress has none yet, and comes last. */
const orderOf = ({ seq }: TimelineItem): number => seq ?? Number.MAX_SAFE_INTEGER;
