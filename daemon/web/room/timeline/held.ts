/** Items of a list while the user reads further down: those that were already there, so that nothing moves. */
import type { TimelineItem } from "../../../../shared/timeline/item.ts";

/** Items that began up to the moment: a prefix, since items are ordered by their begin. */
export function upTo(items: readonly TimelineItem[], at: string | null): readonly TimelineItem[] {
  if (at === null) return items;
  let end = items.length;
  while (end > 0 && (items[end - 1]?.at ?? "") > at) end--;
  return end === items.length ? items : items.slice(0, end);
}
