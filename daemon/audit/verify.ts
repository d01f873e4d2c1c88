/** Owns checking hash chains: the call for an organization's own, and what the operator asks of any. */
import { orgAuditVerify } from "../../shared/api/audit.ts";
import { type Bound, bind } from "../core/operation.ts";
import type { Queries } from "../db/client.ts";
import { type Verdict, verifyChain } from "./chain.ts";
import type { AuditDeps } from "./list.ts";
import { chainHead, walkAudit } from "./store.ts";

export function makeVerify(deps: AuditDeps): Bound[] {
  return [
    bind(orgAuditVerify, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      run: (_call, _input, orgId) => ({ outcome: "ok", body: verifyAudit(deps.queries, orgId) }),
    }),
  ];
}

/** The head is read first: what another process adds meanwhile comes after it. */
export function verifyAudit(queries: Queries, orgKey: string): Verdict {
  const head = chainHead(queries, orgKey);
  return verifyChain(walkAudit(queries, orgKey), head);
}
