/** The operator's changes to organizations and keys, on the host itself. */
import type { TObject } from "@sinclair/typebox";
import { keyCreate, keyRotate, orgCreate } from "../../../shared/api/orgs.ts";
import type { Plan } from "../../../shared/api/people/plans.ts";
import { sshKeyAdd } from "../../../shared/api/ssh.ts";
import type { KeyId, OrgId } from "../../../shared/ids.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit } from "../audit/index.ts";
import { createOrg, type Maker, type NewOrg } from "./create.ts";
import { type NewKey, newKey, rotationOf, toRecord as toKeyRecord } from "./keys.ts";
import { detailsOf } from "./made.ts";
import type { OrgChanges } from "./org-changes.ts";
import type { Plans } from "./plans.ts";
import { type NewSshKey, newSshKey, toRecord } from "./ssh-keys.ts";
import { listSshKeys } from "./ssh-keys-store.ts";
import { getOrg, listKeys, listOrgs } from "./store.ts";
import type { KeyRow } from "./table.ts";
import { grantCredits, type Why } from "./usage/credits.ts";
import { listEntries, toEntry } from "./usage/ledger.ts";

const FIRST_ORG = "default";
const SHOWN_ENTRIES = 100;
const OPERATOR = { type: "operator", id: "host", name: "operator" };
const MAKER = { type: OPERATOR.type, id: OPERATOR.id };
const BY_OPERATOR: Maker = { actor: OPERATOR, source: "cli" };

/** An absent field means everything. */
export type NewKeyOnHost = Omit<NewKey, "kind" | "org_id" | "maker" | "expires_at"> & {
  org_id: OrgId;
  expires_in_seconds?: number;
};

/** `requireBody` throws if the fields break a rule of the operation. */
export function makeOperator(
  database: Database,
  shared: Database,
  changes: OrgChanges,
  plans: Plans,
  requireBody: (operation: { body: TObject }, fields: Record<string, unknown>) => void,
) {
  const record = (queries: Queries, event: string, orgId: OrgId | null, details: Record<string, unknown>) =>
    appendAudit(queries, { ...BY_OPERATOR, event, outcome: "success", at: now(), org_id: orgId, details });

  const addOrg = (request: NewOrg, more: Parameters<typeof createOrg>[4] = {}) =>
    createOrg(changes, request, BY_OPERATOR, (_queries, { org_id, api_key }) => ({ org_id, api_key }), more);

  return {
    /** Once per database: creates the first organization, its key, and the operator's key. */
    init: async (plan: Plan = "free") => {
      const { key, row } = newKey({ org_id: null, kind: "operator", name: "operator", maker: MAKER });
      const made = await addOrg({ name: FIRST_ORG, plan }, { further: [row], isFirst: true });
      return { ...made, operator_key: key };
    },

    createOrg: (request: NewOrg) => {
      requireBody(orgCreate, { ...request });
      return addOrg(request);
    },

    setPlan: (orgId: OrgId, plan: Plan) =>
      changes.setPlan(
        orgId,
        () => ({ plan, plan_by: "operator" }),
        (queries, { before, change }) => {
          record(queries, "org.plan_set", orgId, { plan, before: before.plan });
          return { ...before, ...change };
        },
      ),

    /** Grants credits in addition to the plan's, or withdraws all of those (null); usage is as of the daemon's last write. */
    grantCredits: (orgId: OrgId, more: number | null, why?: Why) =>
      shared.commit((queries) => {
        const org = getOrg(queries, orgId);
        if (!org || org.ending_at !== null) throw new ServiceError("org_not_found");
        const { isNew, ...balance } = grantCredits(queries, orgId, plans[org.plan].credits, more, why);
        const { granted, remaining } = balance;
        const event = more === null ? "org.credits_withdrawn" : "org.credits_granted";
        const reason = why === undefined ? {} : { reason: why.reason };
        if (isNew) record(queries, event, orgId, { more, granted, remaining, ...reason });
        return { org_id: orgId, ...balance, is_new: isNew };
      }),

    /** Newest entries of the credit ledger. Throws org_not_found. */
    listCredits: (orgId: OrgId) => {
      if (!getOrg(database.queries, orgId)) throw new ServiceError("org_not_found");
      return listEntries(database.queries, orgId, null, SHOWN_ENTRIES).map(toEntry);
    },

    listOrgs: () => listOrgs(database.queries),
    /** Records an event of the service as a whole, of no organization. */
    record: (event: string, details: Record<string, unknown>) =>
      database.commit((queries) => record(queries, event, null, details)),

    createKey: ({ org_id, ...body }: NewKeyOnHost) => {
      requireBody(keyCreate, body);
      const { expires_in_seconds: seconds, ...request } = body;
      const expires_at = seconds === undefined ? null : after(now(), seconds);
      const { key, row } = newKey({ ...request, org_id, expires_at, kind: "api", maker: MAKER });
      return changes.addKey(row, (queries, { key_id, name, kind }) => {
        record(queries, "key.created", org_id, { key_id, name, kind });
        return { key_id, key };
      });
    },

    listKeys: (orgId: OrgId) => {
      if (!getOrg(database.queries, orgId)) throw new ServiceError("org_not_found");
      return listKeys(database.queries, orgId).map(toKeyRecord);
    },

    rotateKey: (keyId: KeyId, graceSeconds: number) => {
      requireBody(keyRotate, { grace_seconds: graceSeconds });
      const rotate = (old: KeyRow) => rotationOf(old, graceSeconds, MAKER);
      return changes.rotateKey(keyId, rotate, (queries, { key, row, replaced }) => {
        const details = { key_id: keyId, new_key_id: row.key_id, grace_seconds: graceSeconds };
        record(queries, "key.rotated", row.org_id, details);
        return { ...toKeyRecord(row), key, replaces: toKeyRecord(replaced) };
      });
    },

    revokeKey: (keyId: KeyId) =>
      changes.revokeKey(keyId, (queries, { key: { org_id, name }, made }) =>
        record(queries, "key.revoked", org_id, { key_id: keyId, name, ...detailsOf(made) }),
      ),

    addSshKey: (orgId: OrgId, request: NewSshKey) => {
      requireBody(sshKeyAdd, { ...request });
      return changes.addSshKey(newSshKey(orgId, request, MAKER), (queries, added) => {
        const { ssh_key_id, fingerprint, name } = added;
        record(queries, "key.ssh_added", orgId, { ssh_key_id, fingerprint, name });
        return toRecord(added);
      });
    },

    listSshKeys: (orgId: OrgId) => {
      if (!getOrg(database.queries, orgId)) throw new ServiceError("org_not_found");
      return listSshKeys(database.queries, orgId).map(toRecord);
    },

    removeSshKey: (orgId: OrgId, sshKeyId: string) =>
      changes.removeSshKey(orgId, sshKeyId, (queries, { fingerprint }) => {
        record(queries, "key.ssh_removed", orgId, { ssh_key_id: sshKeyId, fingerprint });
        return { ssh_key_id: sshKeyId, fingerprint, state: "removed" };
      }),
  };
}
