/** Owns the audit: an append-only chain of records per organization, and the calls that read it. */
import type { Bound } from "../core/operation.ts";
import { makeEvents } from "./events.ts";
import { type AuditDeps, makeList } from "./list.ts";
import { makeVerify } from "./verify.ts";

export { type AuditEntry, appendAudit, auditChains, executionRecords, listAudit } from "./store.ts";
export { verifyAudit } from "./verify.ts";

export function makeAudit(deps: AuditDeps): { operations: Bound[] } {
  return { operations: [...makeList(deps), ...makeVerify(deps), ...makeEvents(deps)] };
}
