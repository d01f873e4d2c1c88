/**
 * Owns the timeline of a room and of an organization as a stream of events: the records of its audit, in their order, from
 * the reader's own cursor on. A reader waits at its organization's bell, which rings when the chain has grown.
 */

import { orgEvents, roomEvents } from "../../shared/api/audit.ts";
import type { InputOf } from "../../shared/api/contract.ts";
import { type Bound, bind, type EventsReply, type KeyCall, type StreamEvent } from "../core/operation.ts";
import { ServiceError } from "../core/service-error.ts";
import type { AuditDeps } from "./list.ts";
import { chainHead, listAudit, takeGrown, toRecord } from "./store.ts";

const AT_ONCE = 100;
/** Longer than any daemon runs, and short enough for a timer. */
const FOREVER_MS = 2 ** 31 - 1;
/** What is sent is taken within this time, or the reader is cut off. */
const SLOW_READER_MS = 30_000;
const MOST_READERS = 1000;
const BELL = "chain";
const bellGroup = (orgId: string) => `audit ${orgId}`;

interface Timeline {
  org_id: string;
  room_uid?: string;
  after: number;
  /** Whether to wait for what is still to come. */
  follow: boolean;
  signal: AbortSignal;
}

export function makeEvents(deps: AuditDeps): Bound[] {
  const { queries, bells } = deps;
  takeGrown(queries);
  deps.onCommit(() => {
    for (const orgId of takeGrown(queries)) bells.ring(bellGroup(orgId), BELL);
  });
  let readers = 0;

  const reply = (
    call: KeyCall,
    input: Pick<InputOf<typeof roomEvents>, "after" | "follow">,
    lastEventId: string | null,
    roomUid?: string,
  ): EventsReply => {
    if (readers >= MOST_READERS) {
      throw new ServiceError("rate_limited", {
        detail: `${MOST_READERS} readers follow events, which is the most.`,
        retryAfterSeconds: 5,
      });
    }
    readers++;
    const { org_id } = call.caller;
    const known = lastEventId !== null && /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : undefined;
    const from = input.after ?? known ?? chainHead(queries, org_id)?.seq ?? 0;
    const gone = new AbortController();
    const signal = AbortSignal.any([call.signal, gone.signal]);
    const leave = () => {
      readers--;
    };
    signal.addEventListener("abort", leave, { once: true });
    const timeline = {
      org_id,
      ...(roomUid === undefined ? {} : { room_uid: roomUid }),
      after: from,
      follow: input.follow ?? true,
      signal,
    };
    return { events: follow(deps, timeline, () => gone.abort()), cancel: () => gone.abort(), slow_ms: SLOW_READER_MS };
  };

  return [
    bind(roomEvents, {
      find: (call, params) => deps.findRoom(call.caller, String(params.room_id)),
      run: (call, input, room, { last_event_id }) => {
        call.audit.room_id = room.room_id;
        call.audit.room_uid = room.room_uid;
        return { outcome: "ok", events: reply(call, input, last_event_id, room.room_uid) };
      },
    }),
    bind(orgEvents, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      run: (call, input, _orgId, { last_event_id }) => ({
        outcome: "ok",
        events: reply(call, input, last_event_id),
      }),
    }),
  ];
}

/** Ends with the reader, with its room, and with the daemon; never throws. */
async function* follow(deps: AuditDeps, timeline: Timeline, over: () => void): AsyncGenerator<readonly StreamEvent[]> {
  const { queries, bells } = deps;
  const { org_id, room_uid, signal, follow: waits } = timeline;
  let { after } = timeline;
  const look = () => {
    const rows = listAudit(queries, { org_id, room_uid, order: "asc", after, limit: AT_ONCE });
    return rows.length === 0 ? null : rows;
  };
  try {
    while (!signal.aborted) {
      const deadlineMs = waits ? FOREVER_MS : 0;
      const rows = await bells.wait(bellGroup(org_id), { key: BELL, deadlineMs, signal }, look);
      if (!rows && !waits) return;
      if (!rows) continue;
      after = rows.at(-1)?.seq ?? after;
      yield rows.map((row) => ({ id: row.seq, data: toRecord(row) }));
      const isOver = ({ event, outcome }: { event: string; outcome: string }) =>
        event === "room.destroyed" && outcome === "success";
      if (room_uid !== undefined && rows.some(isOver)) return;
    }
  } catch (error) {
    const code = error instanceof ServiceError ? error.code : "internal";
    yield [{ id: null, data: { type: "error", code } }];
  } finally {
    over();
  }
}
