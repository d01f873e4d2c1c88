/** The `message_ack` call: a message leaves its recipient's inbox. */
import { messageAck } from "../../../shared/api/fabric.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { requireActive } from "../../core/call/room-target.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { actingAs } from "../agents/index.ts";
import type { FabricDeps } from "./deps.ts";
import { findMessageTarget } from "./find.ts";
import { requireRecipient } from "./reply.ts";
import { ackDelivery, findDelivery } from "./store.ts";
import { traceOf } from "./trace.ts";

export function makeAck({ database, ...deps }: FabricDeps): Bound {
  return bind(messageAck, {
    find: (call, params) => findMessageTarget({ database, ...deps }, call, params),
    run: async (call, input, { room, row }) => {
      requireActive(room);
      const agent_id = actingAs(call.caller, input.agent_id, "agent_id");
      requireRecipient(row, agent_id);
      call.trace.answer(traceOf(row.headers));
      const { room_uid, seq, message_id } = row;
      call.audit.agent_id = agent_id;
      call.audit.details = { message_id, seq };
      const place = { room_uid, agent_id, seq };
      await database.commit((queries) => ackDelivery(queries, place), false, ownerOf(room.org_id));
      const state = findDelivery(database.queries, place)?.state ?? "expired";
      return { outcome: "ok", body: { message_id, seq, agent_id, state } };
    },
  });
}
