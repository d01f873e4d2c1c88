/**
 * Owns how a message is kept: everything that can be refused is refused in the transaction that would keep it, and who waits
 * for it is woken once it is on disk.
 */
import { EVERYONE, MAX_INBOX } from "../../../shared/api/fabric.ts";
import { newId } from "../../../shared/ids.ts";
import { at } from "../../core/clock.ts";
import { type Caller, keyBehind } from "../../core/operation.ts";
import type { RoomTarget } from "../../core/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { CallTrace } from "../../core/traces.ts";
import type { Queries } from "../../db/client.ts";
import type { Place } from "../orgs/index.ts";
import { inboxBell, ROOM_BELL, replyBell } from "./bells.ts";
import { bytesOf } from "./budget.ts";
import type { FabricDeps } from "./deps.ts";
import { type Draft, fingerprintOf } from "./draft.ts";
import { findMessage, insertDelivery, insertMessage, noteReply } from "./store.ts";
import type { MessageRow } from "./table.ts";
import { withTrace } from "./trace.ts";

export interface Posted {
  row: MessageRow;
  /** Whether it was kept by this call; otherwise the same call was made before. */
  isNew: boolean;
}

/** What is carried out in the transaction that keeps a message. */
interface Along {
  /** Who sends it. */
  caller: Caller;
  /** Aborts when the caller has gone; asked for where somebody waits, which most never do. */
  signal(): AbortSignal;
  /** Who reads the message can continue it. */
  trace: CallTrace;
  /** Also for one that was kept before; may refuse it. */
  also?(queries: Queries, row: MessageRow): void;
  /** Once it is kept. */
  kept?(row: MessageRow): void;
}

/** Keeps a message. Throws already_exists, agent_not_found, agent_unavailable, inbox_full, quota_exceeded, room_destroying. */
export async function post(deps: FabricDeps, room: RoomTarget, draft: Draft, along: Along): Promise<Posted> {
  const { room_uid } = room;
  const { agents, bells, database } = deps;
  const fingerprint = fingerprintOf(draft);
  const write = (queries: Queries): Posted => {
    const known = draft.message_id === null ? undefined : findMessage(queries, room_uid, draft.message_id);
    if (known) {
      requireSame(known, fingerprint);
      along.also?.(queries, known);
      return { row: known, isNew: false };
    }
    bells.requireOpen(room_uid);
    agents.requireAlive(room_uid, draft.source);
    const recipients = recipientsOf(deps, room, draft);
    requireSpace(deps, queries, room, recipients);
    const row = rowOf(
      room,
      withSendersTrace(draft, along),
      recipients,
      fingerprint,
      deps.order.next(queries, room_uid),
    );
    deps.budget.take(queries, room, bytesOf(row));
    along.also?.(queries, row);
    keep(queries, row);
    deps.meter.count(placeOf(room, draft, along.caller), { messages: 1 });
    agents.touch(queries, room_uid, [draft.source]);
    along.kept?.(row);
    return { row, isNew: true };
  };
  await deps.history.makeSpace(room.org_id, along.signal);
  const posted = await database.commit(write, false);
  if (posted.isNew) {
    deps.history.grown(room.org_id);
    deps.lately.count(room_uid);
    agents.learn(room_uid, [draft.source]);
    for (const agentId of posted.row.recipients) {
      bells.ring(room_uid, inboxBell(agentId));
      deps.delivered(room_uid, agentId);
    }
    bells.ring(room_uid, ROOM_BELL);
    if (posted.row.reply_to !== null) bells.ring(room_uid, replyBell(posted.row.reply_to));
    if (posted.row.expires_at !== null) deps.due.expectAt(Date.parse(posted.row.expires_at));
  }
  return posted;
}

function placeOf({ org_id, room_uid }: RoomTarget, { source }: Draft, caller: Caller): Place {
  return { org_id, room_uid, agent_id: source, key_id: keyBehind(caller) };
}

function requireSame(known: MessageRow, fingerprint: string): void {
  if (known.fingerprint === fingerprint) return;
  throw new ServiceError("already_exists", {
    detail: `message_id ${known.message_id} is already used by a different message.`,
    details: { message_id: known.message_id, seq: known.seq },
  });
}

/** Throws agent_not_found, agent_unavailable. */
function recipientsOf({ agents }: FabricDeps, { room_uid }: RoomTarget, draft: Draft): string[] {
  const { source, destination, destinations, topic } = draft;
  if (topic !== null) return agents.subscribers(room_uid, topic).filter((agentId) => agentId !== source);
  if (destination === EVERYONE) return agents.all(room_uid).filter((agentId) => agentId !== source);
  const named = destinations ?? (destination === null ? [] : [destination]);
  // Who sends takes part by that.
  for (const agentId of named) if (agentId !== source) agents.require(room_uid, agentId);
  return named;
}

function requireSpace(
  { space }: FabricDeps,
  queries: Queries,
  { room_uid }: RoomTarget,
  recipients: readonly string[],
): void {
  const full = space.take(queries, room_uid, recipients);
  if (full.length === 0) return;
  throw new ServiceError("inbox_full", {
    detail: `The inbox of ${full[0]} is full (${MAX_INBOX} messages). This message was sent to nobody.`,
    details: { agents: full, limit: MAX_INBOX },
  });
}

/** By what the sender has said alone a message is known again: the trace it is sent in may be another then. */
function withSendersTrace(draft: Draft, { trace }: Along): Draft {
  return { ...draft, headers: withTrace(draft.headers, trace.context) };
}

function rowOf(
  { room_uid }: RoomTarget,
  draft: Draft,
  recipients: string[],
  fingerprint: string,
  seq: number,
): MessageRow {
  const { payload_sha256: _, ttl_ms, ...rest } = draft;
  const nowMs = Date.now();
  return {
    ...rest,
    room_uid,
    seq,
    message_id: draft.message_id ?? newId("msg"),
    recipients,
    fingerprint,
    created_at: at(nowMs),
    expires_at: ttl_ms === null ? null : at(nowMs + ttl_ms),
  };
}

function keep(queries: Queries, row: MessageRow): void {
  const { room_uid, seq, ack_required } = row;
  insertMessage(queries, row);
  const expires_at_ms = row.expires_at === null ? null : Date.parse(row.expires_at);
  for (const agent_id of row.recipients) {
    const fresh = { state: "queued" as const, attempts: 0, due_at_ms: expires_at_ms, expires_at_ms };
    insertDelivery(queries, { room_uid, agent_id, seq, ack_required, ...fresh, awaited: row.kind === "request" });
  }
  if (row.kind === "response" && row.reply_to !== null) noteReply(queries, row, row.reply_to);
}
