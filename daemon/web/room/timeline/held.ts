/** Owns which items a list shows while somebody reads further down: those that were there, so that nothing moves beneath the eyes. */
import type { TimelineItem } from "../../../../shared/timeline/item.ts";

/** Those up to the moment, which come first: items are in the order of when they began. */
export function upTo(items: readonly TimelineItem[], at: string | null): readonly TimelineItem[] {
  if (at === null) return items;
  let end = items.length;
  while (end > 0 && (items[end - 1]?.at ?? "") > at) end--;
  return end === items.length ? items : items.slice(0, end);
}
