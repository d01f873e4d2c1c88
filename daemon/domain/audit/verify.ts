/** Owns checking hash chains: the calls for an organization's own, and what the operator asks of all of them. */
import { auditVerify, orgAuditVerify } from "../../../shared/api/audit.ts";
import { type Bound, bind } from "../../core/operation.ts";
import type { Queries } from "../../db/client.ts";
import { ChainCheck, type Known, type Verdict } from "./chain.ts";
import { type ChainKey, chainKey } from "./chain-key.ts";
import type { AuditDeps } from "./deps.ts";
import { findRoom } from "./find.ts";
import { walks } from "./scan.ts";
import { chainHead, chainRecords, chainStart } from "./store.ts";

/** A millisecond or two of work; then others have their turn. */
const AT_ONCE = 100;

export function makeVerify(deps: AuditDeps): Bound[] {
  /** Of each organization one at a time: who asks meanwhile hears what that finds. */
  const underWay = new Map<string, Promise<Verdict>>();
  const verify = async (orgId: string): Promise<Verdict> => {
    const verdict =
      underWay.get(orgId) ?? verifyAudit(deps.database.queries, chainKey(orgId)).finally(() => underWay.delete(orgId));
    underWay.set(orgId, verdict);
    return await verdict;
  };
  return [
    bind(orgAuditVerify, {
      find: (call, params) => deps.findOrg(call.caller, String(params.org_id)),
      run: async (_call, _input, orgId) => ({ outcome: "ok", body: await verify(orgId) }),
    }),
    bind(auditVerify, {
      find: (call, params) => findRoom(deps, call, params),
      run: async (call) => ({ outcome: "ok", body: await verify(call.caller.org_id) }),
    }),
  ];
}

/** Checks a chain, a part of it in each turn of the event loop. */
export async function verifyAudit(
  queries: Queries,
  orgKey: ChainKey,
  witnessed?: Known["witnessed"],
): Promise<Verdict> {
  for (;;) {
    const start = chainStart(queries, orgKey);
    // The head is read first: what is added meanwhile comes after it.
    const head = chainHead(queries, orgKey);
    const verdict = await walk(queries, orgKey, new ChainCheck({ start, head, ...(witnessed && { witnessed }) }));
    // Records that were to be looked at may have been purged meanwhile.
    if (verdict.ok || chainStart(queries, orgKey)?.seq === start?.seq) return verdict;
  }
}

async function walk(queries: Queries, orgKey: ChainKey, check: ChainCheck): Promise<Verdict> {
  for (let after = 0; ; ) {
    await walks.turn(orgKey);
    const rows = chainRecords(queries, orgKey, after, AT_ONCE);
    if (!rows.every((row) => check.take(row)) || rows.length < AT_ONCE) return check.end();
    after = rows.at(-1)?.seq ?? after;
  }
}
