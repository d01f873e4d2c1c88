/** How far the displayed state lags: the stream is silent although it should not be, or the received records are old. */
import type { AuditRecord } from "../../../shared/api/audit.ts";

/** A smaller lag is not displayed. */
export const LEAST_MS = 3000;
/** The daemon sends a ping this often while idle, so that a shorter silence has no meaning. */
const PING_MS = 15_000;

export interface Heard {
  isOpen: boolean;
  /** When data or a ping last arrived, by this browser's clock. */
  heardAt: number;
  /** Age of the newest record at its arrival. */
  lateMs: number;
}

/** Zero if the lag is negligible. */
export function behindMs({ isOpen, heardAt, lateMs }: Heard, now: number): number {
  const silentMs = now - heardAt;
  const ms = isOpen && silentMs < PING_MS + LEAST_MS ? lateMs : Math.max(silentMs, lateMs);
  return ms < LEAST_MS ? 0 : ms;
}

/** When a record's call or event ended, in ms: records are ordered by this time, while a call's `at` is its start. */
export const endedAt = ({ at, duration_ms, status }: Pick<AuditRecord, "at" | "duration_ms" | "status">): number =>
  Date.parse(at) + (status === null ? 0 : (duration_ms ?? 0));

/**
 * Age of a record at its arrival. `aheadMs`: by how much this browser's clock is ahead of the service's. Null for a record that summarizes
 * several events: it is written later than they happened.
 */
export function latenessOf(
  { at, duration_ms, status, details }: Pick<AuditRecord, "at" | "duration_ms" | "status" | "details">,
  now: number,
  aheadMs: number,
): number | null {
  if ("first_at" in details) return null;
  return Math.max(0, now - aheadMs - endedAt({ at, duration_ms, status }));
}
