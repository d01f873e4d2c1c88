/** Owns the call that checks an organization's hash chain. */
import { orgAuditVerify } from "../../shared/api/audit.ts";
import { type Bound, bind } from "../core/operation.ts";
import { verifyChain } from "./chain.ts";
import type { AuditDeps } from "./list.ts";
import { walkAudit } from "./store.ts";

export function makeVerify(deps: AuditDeps): Bound[] {
  return [
    bind(orgAuditVerify, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      run: (_call, _input, orgId) => ({ outcome: "ok", body: verifyChain(walkAudit(deps.queries, orgId)) }),
    }),
  ];
}
