/**
 * Owns what a guest may ask of its room: messages, barriers, agents, the drive, its own ports and its own record. It is
 * refused on the road, after the guest is known, so that a refusal is recorded like any other.
 */
import type { Access } from "../../../shared/api/contract.ts";
import type { Bound } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";

/** What a guest's caller may do; all else lacks the scope. */
export const GUEST_SCOPES = [
  "fabric:read",
  "fabric:write",
  "drive:read",
  "drive:write",
  "ports:write",
  "sandboxes:read",
] as const satisfies Access[];

/** Of what those scopes open, this is about others' sandboxes. */
const NOT_ITS_OWN: readonly string[] = ["sandbox_list", "org_sandbox_list"];

export function allowedIn({ agent_id, sandbox_id }: { agent_id: string; sandbox_id: string }, bound: Bound): Bound {
  return {
    ...bound,
    find: (call, params) => {
      call.audit.agent_id = agent_id;
      call.audit.sandbox_id = sandbox_id;
      if (NOT_ITS_OWN.includes(bound.operation.name)) {
        throw new ServiceError("insufficient_scope", { detail: "A sandbox can read only its own record." });
      }
      const { sandbox } = params;
      if (sandbox !== undefined && sandbox !== agent_id && sandbox !== sandbox_id) {
        throw new ServiceError("source_mismatch", {
          detail: `This sandbox belongs to ${agent_id} and has no access to ${sandbox}.`,
          details: { agent_id },
        });
      }
      return bound.find(call, params);
    },
  };
}
