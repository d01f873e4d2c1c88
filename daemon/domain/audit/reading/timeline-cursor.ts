/**
 * Cursor of a timeline: the id of the last event that the reader has received. A room is on one host, and its events are counted: their
 * number is the id. An organization's events may come from many hosts, so their ids are opaque to clients, and an altered one is detected.
 */
import { makeCursor, readCursor } from "../../../core/call/cursor.ts";
import type { StreamEvent } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { type ChainKey, chainKey } from "../chain/chain-key.ts";
import { toRecord } from "../rows.ts";
import type { AuditRow } from "../table.ts";

export interface TimelineCursor {
  /** The seq of the reader's last event. Throws invalid_cursor: to start at any other position would skip events. */
  read(cursor: string): number;
  /** The event of a record, with the cursor for the events after it. */
  eventOf(row: AuditRow): StreamEvent;
}

/** Cursor before the first retained event, in every timeline. */
const BEGINNING = "0";

export const roomCursor: TimelineCursor = {
  read: (cursor) => {
    if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
    throw notAnEvent();
  },
  eventOf: (row) => ({ id: row.seq, data: toRecord(row) }),
};

const kindOf = (chain: ChainKey) => `events ${chain}`;

/** The cursor for the events after a record of an organization's chain: each host has its own. */
export function cursorAfterEvent(orgId: string, seq: number): string {
  return makeCursor(kindOf(chainKey(orgId)), String(seq));
}

/** The record of an organization's chain that the cursor follows. Throws invalid_cursor. */
export function seqOfEvent(orgId: string, cursor: string): number {
  return orgCursor(chainKey(orgId)).read(cursor);
}

/** JSON lines have no ids: there the cursor is a separate field. */
export function orgCursor(chain: ChainKey): TimelineCursor {
  const kind = kindOf(chain);
  return {
    read: (cursor) => {
      if (cursor === BEGINNING) return 0;
      try {
        return Number(readCursor(kind, cursor));
      } catch (error) {
        throw notAnEvent(error);
      }
    },
    eventOf: (row) => {
      const cursor = makeCursor(kind, String(row.seq));
      return { id: cursor, data: { ...toRecord(row), cursor } };
    },
  };
}

/** The error for a cursor that is not from this timeline. */
export function notAnEvent(cause?: unknown): ServiceError {
  return new ServiceError("invalid_cursor", {
    detail: "The cursor, `after` or Last-Event-ID, is not the id of an event of this timeline.",
    hint: "Pass an event's id on unchanged, or 0 for all events that are kept.",
    cause,
  });
}
