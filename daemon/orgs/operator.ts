/** Owns what the operator does with organizations and keys on the host itself. */
import { newId, type OrgId } from "../../shared/ids.ts";
import { appendAudit } from "../audit/index.ts";
import { now } from "../core/clock.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { type Database, violatesUnique } from "../db/transact.ts";
import { createKey, type NewKey } from "./keys.ts";
import { addSshKey, type NewSshKey, removeSshKey, toRecord } from "./ssh-keys.ts";
import { listSshKeys } from "./ssh-keys-store.ts";
import { getOrg, insertOrg, listKeys, listOrgs, revokeKey } from "./store.ts";
import type { KeyRow, Plan } from "./table.ts";

const FIRST_ORG = "default";
const OPERATOR = { type: "operator", id: "host", name: "operator" };

export function makeOperator(database: Database) {
  const record = (queries: Queries, event: string, orgId: OrgId | null, details: Record<string, unknown>) =>
    appendAudit(queries, {
      event,
      outcome: "success",
      at: now(),
      org_id: orgId,
      actor: OPERATOR,
      source: "cli",
      details,
    });

  const addOrg = (queries: Queries, name: string, plan: Plan) => {
    const org_id = newId("org");
    insertOrg(queries, { org_id, name, plan, created_at: now() });
    record(queries, "org.created", org_id, { name, plan });
    return { org_id, api_key: addKey(queries, { org_id, kind: "api", name: "first" }).key };
  };

  const addKey = (queries: Queries, request: NewKey) => {
    const made = createKey(queries, request);
    record(queries, "key.created", request.org_id, { key_id: made.key_id, name: request.name, kind: request.kind });
    return made;
  };

  return {
    /** Once per database: the first organization, its key, and the operator's key. */
    init: () =>
      database.commit((queries) => {
        if (listOrgs(queries).length > 0) {
          throw new ServiceError("already_exists", {
            detail: "This service was initialized before; its keys are shown only once.",
            hint: "Make another key with `roomd key create --org ORG_ID --name NAME`.",
          });
        }
        const made = addOrg(queries, FIRST_ORG, "free");
        return { ...made, operator_key: addKey(queries, { org_id: null, kind: "operator", name: "operator" }).key };
      }),

    createOrg: ({ name, plan }: { name: string; plan?: Plan }) =>
      database
        .commit((queries) => addOrg(queries, name, plan ?? "free"))
        .catch((error: unknown) => {
          if (!violatesUnique(error, "orgs.name")) throw error;
          throw new ServiceError("already_exists", { detail: `There is an organization named ${name}.`, cause: error });
        }),

    listOrgs: () => listOrgs(database.queries),

    createKey: (request: Omit<NewKey, "kind" | "org_id"> & { org_id: OrgId }) =>
      database.commit((queries) => {
        if (!getOrg(queries, request.org_id)) throw new ServiceError("org_not_found");
        return addKey(queries, { ...request, kind: "api" });
      }),

    /** Without what could be used: a key's hash stays inside. */
    listKeys: (orgId: OrgId) => {
      if (!getOrg(database.queries, orgId)) throw new ServiceError("org_not_found");
      return listKeys(database.queries, orgId).map(({ key_sha256: _, ...shown }) => shown);
    },

    addSshKey: (orgId: OrgId, request: NewSshKey) =>
      database.commit((queries) => {
        if (!getOrg(queries, orgId)) throw new ServiceError("org_not_found");
        const { type, id } = OPERATOR;
        const added = addSshKey(queries, orgId, request, { type, id });
        const { ssh_key_id, fingerprint, name } = added;
        record(queries, "key.ssh_added", orgId, { ssh_key_id, fingerprint, name });
        return added;
      }),

    listSshKeys: (orgId: OrgId) => {
      if (!getOrg(database.queries, orgId)) throw new ServiceError("org_not_found");
      return listSshKeys(database.queries, orgId).map(toRecord);
    },

    removeSshKey: (orgId: OrgId, sshKeyId: string) =>
      database.commit((queries) => {
        const { fingerprint } = removeSshKey(queries, orgId, sshKeyId);
        record(queries, "key.ssh_removed", orgId, { ssh_key_id: sshKeyId, fingerprint });
        return { ssh_key_id: sshKeyId, fingerprint, state: "removed" };
      }),

    revokeKey: (keyId: KeyRow["key_id"]) =>
      database.commit((queries) => {
        const revoked = revokeKey(queries, keyId, now());
        if (!revoked) throw new ServiceError("key_not_found");
        record(queries, "key.revoked", revoked.org_id, { key_id: keyId });
      }),
  };
}
