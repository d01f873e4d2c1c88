/** Owns asking for rooms at a glance, page after page, and which events make what was answered old. */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { RoomGlance, roomOverview } from "../../../shared/api/room-overview.ts";
import { isReading } from "../../../shared/audit-reads.ts";
import { get } from "../data/api.ts";
import type { Pace } from "../data/resource.ts";
import type { Glances } from "./table.tsx";

/** It is much that is looked at. */
export const GLANCE_PACE: Pace = { firstMs: 1000, steadyMs: 10_000 };

/**
 * Who begins to wait leaves no record, so that it is asked for while one looks. It is more than a pause of the pace: what events
 * touch is told as soon as ever.
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
