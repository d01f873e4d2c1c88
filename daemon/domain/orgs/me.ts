/** The call that describes the caller's key. */
import { meGet } from "../../../shared/api/service.ts";
import { type Bound, bind } from "../../core/call/operation.ts";

export function makeMe(): Bound {
  return bind(meGet, {
    run: ({ caller }) => ({
      outcome: "ok",
      body: {
        org_id: caller.org_id,
        plan: caller.plan,
        key_id: caller.key_id,
        name: caller.name,
        scopes: [...caller.scopes],
        room_ids: caller.room_ids === null ? null : [...caller.room_ids],
        agent_id: caller.agent_id,
        expires_at: caller.expires_at,
      },
    }),
  });
}
