/** Owns making organizations, each with its first key, by the operator's key or on the host. */
import { orgCreate } from "../../../shared/api/orgs.ts";
import type { Plan } from "../../../shared/api/plans.ts";
import { newId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { type Bound, bind } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { type Database, violatesUnique } from "../../db/transact.ts";
import { appendAudit } from "../audit/index.ts";
import { createKey } from "./keys.ts";
import { insertOrg } from "./store.ts";

const FIRST_KEY = "first";

export interface NewOrg {
  name: string;
  plan?: Plan | undefined;
}

/** Who makes it, as the records have it. */
export type Maker = Pick<Parameters<typeof appendAudit>[1], "actor" | "source" | "request_id" | "ip">;

/** Within a transaction. Throws already_exists. */
export function createOrg(queries: Queries, { name, plan = "free" }: NewOrg, maker: Maker) {
  const org = { org_id: newId("org"), name, plan, created_at: now() };
  try {
    insertOrg(queries, org);
  } catch (error) {
    if (!violatesUnique(error, "orgs.name")) throw error;
    throw new ServiceError("already_exists", { detail: `There is an organization named ${name}.`, cause: error });
  }
  const { org_id } = org;
  const { type, id } = maker.actor;
  const { key, row } = createKey(queries, { org_id, kind: "api", name: FIRST_KEY, maker: { type, id } });
  const { key_id } = row;
  const record = (event: string, details: Record<string, unknown>) =>
    appendAudit(queries, { ...maker, event, outcome: "success", at: org.created_at, org_id, details });
  record("org.created", { name, plan });
  record("key.created", { key_id, name: FIRST_KEY, kind: "api" });
  return { ...org, key_id, api_key: key };
}

export function makeOrgCreate({ database }: { database: Database }): Bound {
  return bind(orgCreate, {
    run: async (call, input) => {
      const { caller, source, request_id, ip, audit } = call;
      audit.details = { name: input.name };
      const actor = { type: "operator", id: caller.key_id, name: caller.name };
      const body = await database.commit((queries) => {
        const made = createOrg(queries, input, { actor, source, request_id, ip });
        audit.details = { org_id: made.org_id, name: input.name, plan: made.plan };
        call.record?.("created", made);
        return made;
      });
      return { outcome: "created", body };
    },
  });
}
