/** Creates organizations, each with its first key: with the operator's key, or on the host. */
import { orgCreate } from "../../../shared/api/orgs.ts";
import type { Plan } from "../../../shared/api/people/plans.ts";
import { type KeyId, newId } from "../../../shared/ids.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { appendAudit } from "../audit/index.ts";
import { newKey } from "./keys.ts";
import type { OrgChanges, Within } from "./org-changes.ts";
import type { KeyRow, NewOrgRow } from "./table.ts";

const FIRST_KEY = "first";

type NewOrgRecord = NewOrgRow & { key_id: KeyId; api_key: string };

export interface NewOrg {
  name: string;
  plan?: Plan | undefined;
}

/** The creator, as in the audit record. */
export type Maker = Pick<Parameters<typeof appendAudit>[1], "actor" | "source" | "request_id" | "ip">;

/** `further` are keys that are created in addition. Throws already_exists. */
export function createOrg<T>(
  changes: OrgChanges,
  { name, plan = "free" }: NewOrg,
  maker: Maker,
  within: Within<NewOrgRecord, T>,
  { further = [], isFirst = false }: { further?: readonly KeyRow[]; isFirst?: boolean } = {},
): Promise<T> {
  const org = { org_id: newId("org"), name, plan, created_at: now() };
  const { type, id } = maker.actor;
  const { key, row } = newKey({ org_id: org.org_id, kind: "api", name: FIRST_KEY, maker: { type, id } });
  return changes.addOrg({ org, keys: [row, ...further], isFirst }, (queries) => {
    const made = { ...maker, outcome: "success" as const, at: org.created_at };
    appendAudit(queries, { ...made, event: "org.created", org_id: org.org_id, details: { name, plan } });
    for (const { key_id, org_id, name, kind } of [row, ...further]) {
      appendAudit(queries, { ...made, event: "key.created", org_id, details: { key_id, name, kind } });
    }
    return within(queries, { ...org, key_id: row.key_id, api_key: key });
  });
}

export function makeOrgCreate({ changes }: { changes: OrgChanges }): Bound {
  return bind(orgCreate, {
    run: async (call, input) => {
      const { caller, source, request_id, ip, audit } = call;
      audit.details = { name: input.name };
      const actor = { type: "operator", id: caller.key_id, name: caller.name };
      const body = await createOrg(changes, input, { actor, source, request_id, ip }, (_queries, made) => {
        audit.details = { org_id: made.org_id, name: input.name, plan: made.plan };
        call.work.keep("created", made);
        return made;
      });
      return { outcome: "created", body };
    },
  });
}
