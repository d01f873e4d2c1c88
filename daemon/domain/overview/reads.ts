/** Reads of the overview that run in reader threads. */

import type { OutputOf } from "../../../shared/api/contract.ts";
import type { roomTimeline } from "../../../shared/api/overview/overview.ts";
import type { TimelineItem, TimelineType } from "../../../shared/timeline/item.ts";
import { selectionOf } from "../../../shared/timeline/selection.ts";
import { toItem } from "../../../shared/timeline/to-item.ts";
import { now } from "../../core/clock.ts";
import type { Read } from "../../db/readers/read.ts";
import { type PageInput, pageOfRecords } from "../audit/reading/pages.ts";

interface TimelineInput {
  room_id: string;
  page: PageInput;
  /** All if absent. */
  types: readonly TimelineType[] | undefined;
  /** Work under way. */
  open: TimelineItem[];
  trace_url: string | null;
}

export const readTimeline: Read<TimelineInput, OutputOf<typeof roomTimeline>> = {
  name: "overview.timeline",
  isOfRecords: true,
  *run(queries, { room_id, page, types, open, trace_url }) {
    const scan = { ...page.scan, selection: selectionOf(types) };
    const { records, next_cursor } = yield* pageOfRecords(queries, { ...page, scan });
    const items = records.flatMap((record) => toItem(record) ?? []);
    yield JSON.stringify({ room_id, at: now(), items, open, next_cursor, trace_url });
  },
};

export const overviewReads = [readTimeline];
