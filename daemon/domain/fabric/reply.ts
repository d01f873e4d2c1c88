/** message_reply: a response to the sender of a message, which it also acknowledges. */
import { messageReply } from "../../../shared/api/fabric.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { requireActive } from "../../core/call/room-target.ts";
import { ServiceError } from "../../core/service-error.ts";
import { actingAs } from "../agents/index.ts";
import type { FabricDeps } from "./deps.ts";
import { contentRules, makeDraft, namedBy } from "./draft.ts";
import { findMessageTarget } from "./find.ts";
import { post } from "./post.ts";
import { receiptOf } from "./record.ts";
import { ackDelivery } from "./store.ts";
import type { MessageRow } from "./table.ts";
import { traceOf } from "./trace.ts";

export function makeReply(deps: FabricDeps): Bound {
  return bind(messageReply, {
    find: (call, params) => findMessageTarget(deps, call, params),
    rules: (input) => contentRules(input),
    run: async (call, input, { room, row: request }) => {
      requireActive(room);
      const source = actingAs(call.caller, input.source, "source");
      requireRecipient(request, source);
      call.trace.follow(traceOf(input.headers));
      call.trace.answer(traceOf(request.headers));
      const address = { destination: request.source, destinations: null, topic: null };
      const draft = makeDraft(namedBy(call.work, { ...input, message_id: input.reply_message_id }), {
        source,
        kind: "response",
        reply_to: request.message_id,
        ...address,
      });
      const { size_bytes, payload_sha256 } = draft;
      call.audit.agent_id = source;
      const note = ({ message_id, seq }: MessageRow) => {
        call.audit.details = {
          reply_to: request.message_id,
          destination: request.source,
          message_id,
          seq,
          size_bytes,
          payload_sha256,
        };
      };
      const { row, isNew } = await post(deps, room, draft, {
        caller: call.caller,
        signal: () => call.signal,
        trace: call.trace,
        also: (queries) => ackDelivery(queries, { room_uid: room.room_uid, agent_id: source, seq: request.seq }),
        kept: ([{ row, isNew }]) => {
          note(row);
          call.work.keep(isNew ? "accepted" : "known", receiptOf(deps.database.queries, row, isNew));
        },
      });
      note(row);
      return { outcome: isNew ? "accepted" : "known", body: receiptOf(deps.database.queries, row, isNew) };
    },
  });
}

/** Throws source_mismatch: only a recipient of the request can answer. */
export function requireRecipient({ message_id, recipients }: MessageRow, agentId: string): void {
  if (recipients.includes(agentId)) return;
  throw new ServiceError("source_mismatch", {
    detail: `Message ${message_id} was not sent to ${agentId}.`,
    details: { message_id },
  });
}
