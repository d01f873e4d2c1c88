/** Loads summaries of rooms page by page, and selects the events that make them stale. */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { RoomGlance, roomOverview } from "../../../shared/api/overview/room-overview.ts";
import { isReading } from "../../../shared/audit-reads.ts";
import { get } from "../data/api.ts";
import type { Pace } from "../data/resource.ts";
import type { Glances } from "./table.tsx";

/** A reload covers many rooms. */
export const GLANCE_PACE: Pace = { firstMs: 1000, steadyMs: 10_000 };

/**
 * The start of a wait leaves no record, so it is polled while the page is visible. Longer than a pause of the pace, so that reloads after
 * events are not delayed.
 */
export const GLANCE_MS = 11_000;

export async function loadGlances(
  { state, label, host, page, most }: { state: string; label?: string; host?: string; page: number; most: number },
  signal: AbortSignal,
): Promise<Glances & { isAll: boolean }> {
  const items: RoomGlance[] = [];
  const askedMs = Date.now();
  let cursor: string | null = null;
  do {
    const answer: Awaited<ReturnType<typeof get<typeof roomOverview>>> = await get<typeof roomOverview>(
      "/v1/overview/rooms",
      { state, label, host, order: "desc", limit: page, cursor },
      signal,
    );
    items.push(...answer.items);
    cursor = answer.next_cursor;
  } while (cursor !== null && items.length < most);
  return { items, askedMs, isAll: cursor === null };
}

export const changesGlances = (record: AuditRecord): boolean =>
  /^(?:room|sandbox|message|barrier)\./.test(record.event) && !isReading(record);
