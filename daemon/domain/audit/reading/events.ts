/**
 * Timelines of a room and of an organization as streams of events: the records of its audit, in order, from the reader's cursor on. A
 * reader waits on the notifier of its organization or room, which fires when the chain has grown.
 */

import { orgEvents, roomEvents } from "../../../../shared/api/audit.ts";
import {
  type Bound,
  bind,
  type EventsReply,
  type KeyCall,
  parsed,
  type StreamEvent,
} from "../../../core/call/operation.ts";
import { monotonicMs, sleep } from "../../../core/clock.ts";
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { chainHead } from "../chain/chain-head.ts";
import { type ChainKey, chainKey } from "../chain/chain-key.ts";
import { CHAIN_TOPIC, topicGroup } from "../chain/chain-notifier.ts";
import { closedUpTo } from "../days/parts.ts";
import type { AuditDeps } from "../deps.ts";
import { findRoom } from "../find.ts";
import { RoomNumbers } from "../room-numbers.ts";
import { chainStart, listAudit } from "../rows.ts";
import type { AuditRow } from "../table.ts";
import { type Readers, SLOW_READER } from "./readers.ts";
import { readStretch } from "./reads.ts";
import { AT_ONCE, type SharedTail, SharedTails, type Source, sliceOf } from "./shared-tail.ts";
import { orgCursor, roomCursor, type TimelineCursor } from "./timeline-cursor.ts";

/** Batching: events within this time of the last sent ones are sent together. */
const TOGETHER_MS = 20;
/** The reader's next records are in closed days. */
const CLOSED = Symbol("closed");

interface Timeline {
  org_id: string;
  room_uid: string | undefined;
  after: number;
  /** Whether to wait for future events. */
  follow: boolean;
  tail: SharedTail;
  past: Past;
  /** Ends the stream: with the error, if it carries one; else because the reader has gone. */
  signal: AbortSignal;
}

/** The part of a timeline in closed days, which reader threads read. */
interface Past {
  /** Range in the chain; null if the next records are not in closed days. */
  rangeAfter(after: number): { after: number; last: number } | null;
  /** Convert a record, and a seq, to the numbering of the timeline. */
  shown(row: AuditRow): AuditRow;
  placeOf(seq: number): number;
  eventOf: Source["eventOf"];
}

export interface Events {
  operations: Bound[];
  /** Ends streams of a room before its events continue on another host; its readers continue there. */
  endRoom(roomUid: string): void;
}

export function makeEvents(deps: AuditDeps, readers: Readers): Events {
  const { queries } = deps.database;
  /** Functions that end the streams of a room, by its uid. */
  const followed = new Map<string, Set<() => void>>();
  const tails = new SharedTails();
  const reply = (
    call: KeyCall,
    input: { after?: string | number | undefined; follow?: boolean | undefined },
    lastEventId: string | null,
    cursor: TimelineCursor,
    room_uid?: string,
  ): EventsReply => {
    const { org_id } = call.caller;
    const chain = chainKey(org_id);
    // A client that reconnects uses its original URL, and gives its later position in the header.
    const place = lastEventId || input.after;
    const known = place === undefined ? undefined : cursor.read(String(place));
    const numbers = room_uid === undefined ? null : new RoomNumbers(queries, { org_id, room_uid });
    const head = () => numbers?.head() ?? chainHead(queries, chain)?.seq ?? 0;
    requireKept(numbers?.keptAfter() ?? chainStart(queries, chain)?.seq ?? 0, known);
    const after = known ?? head();
    const cancellation = new AbortController();
    const cancel = () => cancellation.abort();
    const signal = AbortSignal.any([call.signal, cancellation.signal]);
    readers.add(call.caller, signal, cancel);
    const placeOf = (seq: number) => numbers?.numberOf(seq) ?? seq;
    const source: Source = {
      head,
      closedUpTo: () => placeOf(closedUpTo(queries, chain)),
      read: (range) => numbers?.read(range) ?? listAudit(queries, { org_id, order: "asc", ...range }),
      eventOf: cursor.eventOf,
    };
    const tail = tails.join(`${chain} ${room_uid ?? ""}`, source, signal);
    if (room_uid !== undefined) enter(followed, room_uid, cancel, signal);
    const past: Past = {
      rangeAfter: (from) => (numbers ? numbers.closedAfter(from) : closedAfter(queries, chain, from)),
      shown: (row) => numbers?.numbered(row) ?? row,
      placeOf,
      eventOf: cursor.eventOf,
    };
    const timeline = { org_id, room_uid, after, follow: input.follow ?? true, tail, past, signal };
    const cut = () => {
      deps.log.info(SLOW_READER.events, { org_id, room_uid, key_id: call.caller.key_id });
      cancel();
    };
    return { events: follow(deps, timeline, cancel), cancel, slow: { ms: deps.slowReaderMs, cut } };
  };

  const operations = [
    bind(roomEvents, {
      find: (call, params) => findRoom(deps, call, params),
      run: (call, input, { room_uid }, { last_event_id }) => ({
        outcome: "ok",
        events: reply(call, input, last_event_id, roomCursor, room_uid),
      }),
    }),
    bind(orgEvents, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      run: (call, input, _orgId, { last_event_id }) => ({
        outcome: "ok",
        events: reply(call, input, last_event_id, orgCursor(chainKey(call.caller.org_id))),
      }),
    }),
  ];
  return {
    operations,
    endRoom: (roomUid) => {
      for (const end of [...(followed.get(roomUid) ?? [])]) end();
    },
  };
}

function closedAfter(queries: Queries, chain: ChainKey, after: number) {
  const last = closedUpTo(queries, chain);
  return after < last ? { after, last } : null;
}

/** Until the signal is given. */
function enter(followed: Map<string, Set<() => void>>, roomUid: string, end: () => void, signal: AbortSignal): void {
  const ends = followed.get(roomUid) ?? new Set();
  followed.set(roomUid, ends.add(end));
  const leave = () => {
    ends.delete(end);
    if (ends.size === 0) followed.delete(roomUid);
  };
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });
}

/** Throws history_gone if events after the reader's last one were purged. From 0 on: all that there are. */
function requireKept(purged: number, after: number | undefined): void {
  if (!after || after >= purged) return;
  throw new ServiceError("history_gone", {
    detail: `Events up to ${purged} are no longer kept.`,
    details: { first_seq: purged + 1 },
  });
}

/** Ends with the reader, its key, its room or the daemon; never throws. */
async function* follow(deps: AuditDeps, timeline: Timeline, over: () => void): AsyncGenerator<readonly StreamEvent[]> {
  const { bells, database } = deps;
  const { org_id, room_uid, tail, past, signal, follow: waits } = timeline;
  let { after } = timeline;
  const deadlineMs = waits ? Number.POSITIVE_INFINITY : 0;
  const owner = ownerOf(org_id);
  const wait = { key: room_uid ?? CHAIN_TOPIC, owner, deadlineMs, signal };
  const pieces = new Pieces(loopTime, owner, "events.read");
  try {
    while (!signal.aborted) {
      // Fast readers, and many that start together, share the event loop.
      const turn = pieces.next();
      if (turn) await turn;
      const closed = past.rangeAfter(after);
      if (closed) {
        const read = { org_id, room_uid: room_uid ?? null, ...closed };
        const rows = parsed(await deps.reads.read(readStretch, read, { owner, signal }));
        after = past.placeOf(rows.at(-1)?.seq ?? closed.last);
        if (rows.length === 0) continue;
        const { events, hasEnd } = sliceOf(rows.map(past.shown), past.eventOf);
        yield events;
        if (room_uid !== undefined && hasEnd) return;
        continue;
      }
      // Days may be closed during the wait.
      const next = () => (past.rangeAfter(after) ? CLOSED : tail.after(after));
      const slice = await bells.wait(topicGroup(chainKey(org_id)), wait, next);
      if (signal.aborted || (!slice && !waits)) break;
      if (!slice || slice === CLOSED) continue;
      const toldAt = monotonicMs();
      const unflushed = database.unflushed(owner, true);
      if (unflushed) await unflushed;
      after = slice.last;
      yield slice.events;
      if (room_uid !== undefined && slice.hasEnd) return;
      // A reader that catches up on old events is not delayed.
      const isNew = slice.events.length < AT_ONCE && monotonicMs() - toldAt < TOGETHER_MS;
      // Jitter: if all readers read at the same moment, other work would wait for all of them.
      if (waits && isNew) await sleep(TOGETHER_MS * (0.5 + Math.random()));
    }
    if (signal.reason instanceof ServiceError) throw signal.reason;
  } catch (error) {
    const code = error instanceof ServiceError ? error.code : "internal";
    yield [{ id: null, data: { type: "error", code } }];
  } finally {
    over();
  }
}
