/** Waits for the reply to a message until it arrives, the deadline passes, or the recipient ends. */

import type { RoomTarget } from "../../core/call/room-target.ts";
import { now } from "../../core/clock.ts";
import type { AgentWait } from "../../core/concurrency/wait-graph.ts";
import type { OwnerName } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import { replyBell } from "./bells.ts";
import type { FabricDeps } from "./deps.ts";
import { ackDelivery, findDelivery, findMessage, findReply } from "./store.ts";
import type { MessageRow } from "./table.ts";
import { traceOf } from "./trace.ts";

/** Once the reply exists the wait is for no agent, even before the reply is returned: the replier may wait for the source by then. */
export function waitForReply(
  { database }: FabricDeps,
  { room_uid }: RoomTarget,
  source: string,
  recipient: string,
): AgentWait {
  const shown: AgentWait["shown"] = { type: "reply", id: null };
  const isThere = (reply_to: string) =>
    findReply(database.queries, { room_uid, reply_to, source: recipient, agent_id: source }) !== undefined;
  return {
    agents: [source],
    on: () => (shown.id !== null && isThere(shown.id) ? [] : [recipient]),
    about: () => `reply ${shown.id}`,
    since: now(),
    shown,
  };
}

/**
 * Returns the reply after removing it from the source's inbox. Throws reply_timeout, agent_unavailable, message_not_found, room_destroying.
 */
export async function awaitReply(
  deps: FabricDeps,
  { room_uid, message_id, seq }: MessageRow,
  wait: {
    source: string;
    recipient: string;
    owner: OwnerName;
    deadlineMs: number;
    signal: AbortSignal;
    /** Called with the reply, unless the source's inbox was read before. */
    isFirst(reply: MessageRow): void;
  },
): Promise<MessageRow> {
  const { agents, bells, database } = deps;
  const { source, recipient, owner, deadlineMs, signal } = wait;
  const reply = await bells.wait(room_uid, { key: replyBell(message_id), owner, deadlineMs, signal }, () => {
    const found = findReply(database.queries, { room_uid, reply_to: message_id, source: recipient, agent_id: source });
    if (found) return found;
    // If the recipient or the source is gone, the request cannot be answered.
    for (const agentId of [recipient, source]) agents.requireAlive(room_uid, agentId);
    // Nor can it if the message is gone: the room was restored to a checkpoint from before it.
    if (!findMessage(database.queries, room_uid, message_id)) throw messageGone(message_id);
    return null;
  });
  if (!reply) {
    throw new ServiceError("reply_timeout", {
      detail: `${recipient} did not reply within ${deadlineMs} ms. The message stays in its inbox.`,
      details: { message_id, seq },
      hint: "Send the same message_id and body again to keep waiting. A late reply goes to your inbox.",
    });
  }
  const place = { room_uid, agent_id: source, seq: reply.seq };
  await database.commit(
    (queries) => {
      if (traceOf(reply.headers) && findDelivery(queries, place)?.state === "queued") wait.isFirst(reply);
      ackDelivery(queries, place);
    },
    false,
    owner,
  );
  return reply;
}

function messageGone(messageId: string): ServiceError {
  return new ServiceError("message_not_found", {
    detail: `Message ${messageId} is no longer in the room, so it cannot get a reply.`,
    hint: "The room was restored to a checkpoint from before the message. Send it again if it is still needed.",
  });
}
