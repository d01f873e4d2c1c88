/** message_get: a message and its delivery. */
import { messageGet } from "../../../shared/api/fabric.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { FabricDeps } from "./deps.ts";
import { findMessageTarget } from "./find.ts";
import { receiptOf, toMessage } from "./record.ts";

export function makeGet(deps: FabricDeps): Bound {
  return bind(messageGet, {
    find: (call, params) => findMessageTarget(deps, call, params),
    run: ({ caller }, _input, { room, row }) => {
      const { agent_id } = caller;
      // An agent sees only messages that it sent or received.
      if (agent_id !== null && row.source !== agent_id && !row.recipients.includes(agent_id)) {
        throw new ServiceError("message_not_found", {
          detail: `Room ${room.room_id} has no message ${row.message_id}.`,
        });
      }
      const { state, deliveries, recipient_count } = receiptOf(deps.database.queries, row, false);
      return { outcome: "ok", body: { ...toMessage(row), state, deliveries, recipient_count } };
    },
  });
}
