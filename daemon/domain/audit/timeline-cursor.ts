/**
 * Owns how a reader of a timeline says how far it has come: by the id of the last event that it knows. A room is on one host, and
 * its events are counted: their number is the id. An organization's events may come from many hosts, so their ids are opaque to
 * clients, and an edited one is known.
 */
import { makeCursor, readCursor } from "../../core/cursor.ts";
import type { StreamEvent } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { type ChainKey, chainKey } from "./chain-key.ts";
import { toRecord } from "./rows.ts";
import type { AuditRow } from "./table.ts";

export interface TimelineCursor {
  /** The seq of the last event that the reader knows. Throws invalid_cursor: to begin anywhere else would leave something out. */
  read(cursor: string): number;
  /** A record with the cursor of what comes after it. */
  eventOf(row: AuditRow): StreamEvent;
}

/** In every timeline: before the first event that is kept. */
const BEGINNING = "0";

export const roomCursor: TimelineCursor = {
  read: (cursor) => {
    if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
    throw notAnEvent();
  },
  eventOf: (row) => ({ id: row.seq, data: toRecord(row) }),
};

const kindOf = (chain: ChainKey) => `events ${chain}`;

/** The cursor of what comes after a record of an organization's chain: each host has it for its own. */
export function cursorAfterEvent(orgId: string, seq: number): string {
  return makeCursor(kindOf(chainKey(orgId)), String(seq));
}

/** The record of an organization's chain that such a cursor comes after. Throws invalid_cursor. */
export function seqOfEvent(orgId: string, cursor: string): number {
  return orgCursor(chainKey(orgId)).read(cursor);
}

/** Lines of JSON have no ids: there it is a field of its own. */
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

/** Of a cursor that is none of the timeline. */
export function notAnEvent(cause?: unknown): ServiceError {
  return new ServiceError("invalid_cursor", {
    detail: "The cursor, `after` or Last-Event-ID, is not the id of an event of this timeline.",
    hint: "Pass an event's id on unchanged, or 0 for all events that are kept.",
    cause,
  });
}
