/**
 * Stores messages: every refusal is decided in the transaction that would store the message, and waiting calls are woken once it is on
 * disk.
 */
import { EVERYONE, MAX_INBOX } from "../../../shared/api/fabric.ts";
import { newId } from "../../../shared/ids.ts";
import { type Caller, keyBehind } from "../../core/call/operation.ts";
import type { RoomTarget } from "../../core/call/room-target.ts";
import type { CallTrace } from "../../core/call/traces.ts";
import { at, wallMs } from "../../core/clock.ts";
import { loopTime, ownerOf, Pieces } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Consumer } from "../orgs/index.ts";
import type { Address } from "./address.ts";
import { Batch } from "./batch.ts";
import { inboxBell, ROOM_BELL, replyBell } from "./bells.ts";
import type { FabricDeps } from "./deps.ts";
import { type Draft, fingerprintOf } from "./draft.ts";
import { bytesOf } from "./retention/budget.ts";
import { Busy, MAX_AT_ONCE, type Spread } from "./spread.ts";
import { findMessage, insertDelivery, insertMessage, noteReply } from "./store.ts";
import type { DeliveryRow, MessageRow } from "./table.ts";
import { withTrace } from "./trace.ts";

/** Number of recipients that count as one call against a key's rate limit. */
const RECIPIENTS_OF_A_CALL = 100;

export interface Posted {
  row: MessageRow;
  /** Whether this call stored it; otherwise an earlier attempt of the call did. */
  isNew: boolean;
}

type AllPosted = [Posted, ...Posted[]];

/** Options of a post, used in the transaction that stores the messages. */
interface Along {
  /** The sender. */
  caller: Caller;
  /** Aborts when the caller has disconnected; called only if the post waits, which is rare. */
  signal(): AbortSignal;
  /** A reader of a message can continue this trace. */
  trace: CallTrace;
  /** Called for each message, also for one that was stored before; may refuse it by throwing. */
  also?(queries: Queries, row: MessageRow): void;
  /** Once all are kept. */
  kept(posted: AllPosted): void;
  /** Returns the error to throw if one of several messages is refused. */
  refused?(error: unknown, index: number): unknown;
}

/** Stores a message. Throws already_exists, agent_not_found, agent_unavailable, inbox_full, quota_exceeded, room_destroying. */
export async function post(deps: FabricDeps, room: RoomTarget, draft: Draft, along: Along): Promise<Posted> {
  const [posted] = await postAll(deps, room, [draft], along);
  return posted;
}

/** Stores messages, each as if after its predecessor, all of them or none. Throws as `post`. */
export async function postAll(
  deps: FabricDeps,
  room: RoomTarget,
  drafts: readonly Draft[],
  along: Along,
): Promise<AllPosted> {
  const letters = drafts.map((draft) => ({ draft, fingerprint: fingerprintOf(draft) }));
  const write = (queries: Queries, spread: Spread | null): AllPosted => {
    deps.spreads.requireNone(room.room_uid, spread);
    const batch = new Batch(deps.agents, room.room_uid);
    spread?.begin(queries);
    const posted = letters.map((letter, index) => {
      try {
        return postOne(deps, queries, room, letter, along, { batch, spread, nowMs: spread?.startedAtMs ?? wallMs() });
      } catch (error) {
        throw along.refused?.(error, index) ?? error;
      }
    });
    spread?.end(queries);
    along.kept(posted as AllPosted);
    return posted as AllPosted;
  };
  await deps.history.makeSpace(room.org_id, along.signal);
  const pieces = new Pieces(loopTime, ownerOf(room.org_id), "message.spread");
  const recipients = probableRecipients(deps, room, drafts);
  const posted =
    recipients.reduce((sum, { length }) => sum + length, 0) > MAX_AT_ONCE
      ? await postSpread(deps, room, [...new Set([...new Set(recipients)].flat())], write, pieces)
      : await postTogether(deps, room, write);
  const rows = posted.flatMap(({ row, isNew }) => (isNew ? [row] : []));
  if (rows.length > 0) await tell(deps, room, rows, pieces);
  return posted;
}

/** Number of calls counted for the messages' recipients, in addition to one per message. */
export function callsForRecipients(deps: FabricDeps, room: RoomTarget, messages: readonly Address[]): number {
  const recipients = probableRecipients(deps, room, messages).reduce((sum, { length }) => sum + length, 0);
  return Math.floor(recipients / RECIPIENTS_OF_A_CALL);
}

/** Recipients of each message, as far as known; an invalid message is rejected when it is stored. */
function probableRecipients(
  { agents }: FabricDeps,
  { room_uid }: RoomTarget,
  messages: readonly Address[],
): (readonly string[])[] {
  const groups = new Map<string, readonly string[]>();
  const groupOf = (name: string, find: () => string[]) => {
    const found = groups.get(name) ?? find();
    groups.set(name, found);
    return found;
  };
  return messages.map(({ destination, destinations, topic }) => {
    if (topic !== null) return groupOf(`topic ${topic}`, () => agents.subscribers(room_uid, topic));
    if (destination === EVERYONE) return groupOf(EVERYONE, () => agents.all(room_uid));
    return destinations ?? (destination === null ? [] : [destination]);
  });
}

type Write = (queries: Queries, spread: Spread | null) => AllPosted;

/** In one commit, after any spread in progress in the room. */
async function postTogether({ database }: FabricDeps, { org_id }: RoomTarget, write: Write): Promise<AllPosted> {
  for (;;) {
    try {
      return await database.commit((queries) => write(queries, null), false, ownerOf(org_id));
    } catch (error) {
      if (!(error instanceof Busy)) throw error;
      await error.over;
    }
  }
}

async function postSpread(
  { bells, database, space, spreads }: FabricDeps,
  { org_id, room_uid }: RoomTarget,
  recipients: readonly string[],
  write: Write,
  pieces: Pieces,
): Promise<AllPosted> {
  const spread = await spreads.enter(room_uid, ownerOf(org_id));
  try {
    await space.count(database.queries, room_uid, recipients, pieces);
    return await spread.run(
      () => database.commit((queries) => write(queries, spread), false, ownerOf(org_id)),
      () => bells.requireOpen(room_uid),
    );
  } finally {
    spread.leave();
  }
}

interface Letter {
  draft: Draft;
  fingerprint: string;
}

function postOne(
  deps: FabricDeps,
  queries: Queries,
  room: RoomTarget,
  { draft, fingerprint }: Letter,
  along: Along,
  { batch, spread, nowMs }: { batch: Batch; spread: Spread | null; nowMs: number },
): Posted {
  const { room_uid } = room;
  const { agents, bells } = deps;
  const known = draft.message_id === null ? undefined : findMessage(queries, room_uid, draft.message_id);
  if (known) {
    requireSame(known, fingerprint);
    along.also?.(queries, known);
    return { row: known, isNew: false };
  }
  bells.requireOpen(room_uid);
  agents.requireAlive(room_uid, draft.source);
  const recipients = batch.recipientsOf(draft);
  requireSpace(deps, queries, room, recipients);
  const seq = deps.order.next(queries, room_uid);
  const row = rowOf(room, withSendersTrace(draft, along), { recipients, fingerprint, seq, nowMs });
  deps.budget.take(queries, room, bytesOf(row));
  along.also?.(queries, row);
  keep(queries, row, spread);
  deps.meter.count(placeOf(room, draft, along.caller), { messages: 1 });
  if (batch.sends(draft.source)) agents.touch(queries, room_uid, [draft.source]);
  return { row, isNew: true };
}

/** Called once the messages are on disk: wakes their waiters, once for all new messages. */
async function tell(
  { agents, bells, delivered, due, history, lately }: FabricDeps,
  room: RoomTarget,
  rows: MessageRow[],
  pieces: Pieces,
): Promise<void> {
  const { room_uid } = room;
  history.grown(room.org_id);
  for (const { source, reply_to, expires_at } of rows) {
    lately.count(room_uid);
    agents.learn(room_uid, [source]);
    if (expires_at !== null) due.expectAt(Date.parse(expires_at));
    if (reply_to !== null) bells.ring(room_uid, replyBell(reply_to));
  }
  const recipients = new Set(rows.flatMap((row) => row.recipients));
  for (const agentId of recipients) {
    const turn = recipients.size > MAX_AT_ONCE ? pieces.next() : null;
    if (turn) await turn;
    bells.ring(room_uid, inboxBell(agentId));
    delivered(room_uid, agentId);
  }
  bells.ring(room_uid, ROOM_BELL);
}

function placeOf({ org_id, room_uid }: RoomTarget, { source }: Draft, caller: Caller): Consumer {
  return { org_id, room_uid, agent_id: source, key_id: keyBehind(caller) };
}

function requireSame(known: MessageRow, fingerprint: string): void {
  if (known.fingerprint === fingerprint) return;
  throw new ServiceError("already_exists", {
    detail: `message_id ${known.message_id} is already used by a different message.`,
    details: { message_id: known.message_id, seq: known.seq },
  });
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
    detail: `The inbox of ${full[0]} is full (${MAX_INBOX} messages). The message was not sent to any recipient.`,
    details: { agents: full, limit: MAX_INBOX },
  });
}

/** A retry is recognized by the sender's fields alone; its trace context may differ. */
function withSendersTrace(draft: Draft, { trace }: Along): Draft {
  return { ...draft, headers: withTrace(draft.headers, trace.context) };
}

function rowOf(
  { room_uid }: RoomTarget,
  draft: Draft,
  { nowMs, ...known }: Pick<MessageRow, "recipients" | "fingerprint" | "seq"> & { nowMs: number },
): MessageRow {
  const { payload_sha256: _, ttl_ms, ...rest } = draft;
  return {
    ...rest,
    ...known,
    room_uid,
    message_id: draft.message_id ?? newId("msg"),
    created_at: at(nowMs),
    expires_at: ttl_ms === null ? null : at(nowMs + ttl_ms),
  };
}

function keep(queries: Queries, row: MessageRow, spread: Spread | null): void {
  insertMessage(queries, row);
  const { seq, recipients } = row;
  const rowOf = (agentId: string) => deliveryOf(row, agentId);
  if (spread) spread.deliver(queries, { seq, recipients, rowOf });
  else for (const agentId of recipients) insertDelivery(queries, rowOf(agentId));
  if (row.kind === "response" && row.reply_to !== null) noteReply(queries, row, row.reply_to);
}

function deliveryOf({ room_uid, seq, ack_required, expires_at, kind }: MessageRow, agent_id: string): DeliveryRow {
  const expires_at_ms = expires_at === null ? null : Date.parse(expires_at);
  const fresh = { state: "queued" as const, attempts: 0, due_at_ms: expires_at_ms, expires_at_ms };
  return { room_uid, agent_id, seq, ack_required, ...fresh, awaited: kind === "request" };
}
