/**
 * Authorization of guests in their room: messages, barriers, agents, the drive, own ports and the own record. Checked in the pipeline,
 * after the guest is identified, so that a refusal is audited like any other.
 */
import type { Access } from "../../../shared/api/contract.ts";
import type { Bound } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Scopes of a guest's caller; every other scope is missing. */
export const GUEST_SCOPES = [
  "fabric:read",
  "fabric:write",
  "drive:read",
  "drive:write",
  "ports:write",
  "sandboxes:read",
] as const satisfies Access[];

/** Operations within those scopes that concern other sandboxes. */
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
