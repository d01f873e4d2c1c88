/** Items of a list while the user reads further down: those that were already there, so that nothing moves. */
import type { TimelineItem } from "../../../../shared/timeline/item.ts";

/** Those up to the moment, which come first: items are in the order of when they began. */
export function upTo(items: readonly TimelineItem[], at: string | null): readonly TimelineItem[] {
  if (at === null) return items;
  let end = items.length;
  while (end > 0 && (items[end - 1]?.at ?? "") > at) end--;
  return end === items.length ? items : items.slice(0, end);
}
