/** Reads of messages that run in reader threads. */
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { agentWait } from "../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { makeCursor } from "../../core/call/cursor.ts";
import type { AnyRead, Read } from "../../db/readers/read.ts";
import type { Row } from "./inbox/inbox-store.ts";
import { messageJson } from "./record.ts";
import { type PageSelection, pageOf } from "./scan.ts";
import { inboxDepth } from "./store.ts";

export interface MessagesInput extends PageSelection {
  /** Kind of its cursors. */
  cursor: string;
  /** Start position of the caller's last page. */
  from: number;
  /** Whether a further page is certain. */
  more: boolean;
}

/** A message that the response hands out, for the first time or again. */
export type HandedOut = Pick<
  Row,
  "room_uid" | "message_id" | "seq" | "source" | "kind" | "headers" | "ack_required" | "created_at"
>;

/** Of a page. */
export interface Facts {
  count: number;
  fresh: HandedOut[];
}

/** A page of messages; those of an inbox are shown with this page's hand-out counted. */
export const readMessages: Read<MessagesInput, OutputOf<typeof agentWait>, Facts> = {
  name: "fabric.messages",
  isOfRecords: false,
  *run(queries, input) {
    const { rows, more } = yield* pageOf(queries, input);
    const fresh: HandedOut[] = [];
    for (const [at, row] of rows.entries()) {
      const isFresh = row.delivery_state === "queued";
      if (isFresh) fresh.push(handedOut(row));
      const attempt = row.attempts === undefined ? null : row.attempts + (isFresh ? 1 : 0);
      yield (at === 0 ? '{"items":[' : ",") + messageJson(row, attempt);
    }
    const next_after = Math.max(input.from, rows.at(-1)?.seq ?? 0);
    const next_cursor = more || input.more ? makeCursor(input.cursor, String(next_after)) : null;
    const end = JSON.stringify({ next_cursor, next_after }).slice(1);
    yield { text: `${rows.length === 0 ? '{"items":[' : ""}],${end}`, rest: { count: rows.length, fresh } };
  },
};

const handedOut = ({ room_uid, message_id, seq, source, kind, headers, ack_required, created_at }: Row): HandedOut => ({
  room_uid,
  message_id,
  seq,
  source,
  kind,
  headers,
  ack_required,
  created_at,
});

export interface Inboxes {
  room_uid: RoomUid;
  agents: readonly string[];
}

/** Number of messages in each inbox. */
export const readDepths: Read<Inboxes, number[]> = {
  name: "fabric.depths",
  isOfRecords: false,
  *run(queries, { room_uid, agents }) {
    for (const [at, agent] of agents.entries())
      yield (at === 0 ? "[" : ",") + String(inboxDepth(queries, room_uid, agent));
    yield agents.length === 0 ? "[]" : "]";
  },
};

export const fabricReads: readonly AnyRead[] = [readMessages, readDepths];
