import { expect, test } from "vitest";
import { upTo } from "../../../daemon/web/room/timeline/held.ts";
import type { TimelineItem } from "../../../shared/timeline/item.ts";

const item = (seq: number, at: string) => ({ seq, at }) as TimelineItem;
const items = [item(1, "2026-01-31T12:00:00Z"), item(2, "2026-01-31T12:00:01Z"), item(3, "2026-01-31T12:00:01Z")];
const later = item(4, "2026-01-31T12:00:02Z");

test("items that arrive while the user reads further down are held back, and no others", () => {
  expect(upTo([...items, later], null)).toHaveLength(4);
  expect(upTo([...items, later], "2026-01-31T12:00:01Z").map(({ seq }) => seq)).toEqual([1, 2, 3]);
  expect(upTo(items, "2026-01-31T12:00:01Z")).toBe(items);
  expect(upTo([later], "2026-01-31T12:00:01Z")).toEqual([]);
});
