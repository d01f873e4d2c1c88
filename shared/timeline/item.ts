/** Type of an item (a span or a mark) of a room's timeline. */
import type { AuditRecord } from "../api/audit.ts";

export const LANES = ["agent", "room", "egress", "ports"] as const;
export type Lane = (typeof LANES)[number];

export const TIMELINE_TYPES = [
  "command",
  "wait",
  "standby",
  "message",
  "barrier",
  "refusal",
  "sandbox",
  "terminal",
  "drive",
  "port",
  "room",
] as const;
export type TimelineType = (typeof TIMELINE_TYPES)[number];

export interface TimelineItem {
  /** Sequence number of its record; null for a span in progress. */
  seq: number | null;
  lane: Lane;
  agent_id: string | null;
  kind: "span" | "mark";
  type: TimelineType;
  at: string;
  /** The end of a span; null for a mark, and for a span in progress. */
  until: string | null;
  outcome: AuditRecord["outcome"];
  /** One line, at most 200 characters. */
  title: string;
  to: string[];
  ref: { type: string; id: string } | null;
  exit_code: number | null;
  /** The trace to which the item belongs. */
  trace_id: string | null;
}
