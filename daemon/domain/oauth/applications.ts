/** Calls on the applications that any member of an organization has authorized: for owners, admins and keys with org:admin. */
import { DEFAULT_PAGE } from "../../../shared/api/contract.ts";
import { type ApplicationRecord, applicationEnd, applicationList } from "../../../shared/api/grants.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { readCursor, toPage } from "../../core/call/cursor.ts";
import { type Bound, bind, type KeyCall } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import { countsOf, detailsOf } from "../orgs/index.ts";
import type { OAuthDeps } from "./deps.ts";
import { toRecord } from "./grants.ts";
import { type Application, dropGrant, getApplication, listApplications } from "./store.ts";

const CURSOR = "applications";

export function makeApplications({
  database,
  changes,
  orgs,
}: Pick<OAuthDeps, "database" | "changes" | "orgs">): Bound[] {
  const { queries } = database;
  /** Throws org_not_found, insufficient_scope. */
  const find = ({ caller }: KeyCall, params: Record<string, string>): OrgId => {
    const orgId = orgs.find(caller, String(params.org_id));
    if (caller.session && !caller.session.gives.includes("org:admin")) {
      throw new ServiceError("insufficient_scope", {
        detail: "Only owners and admins can see an organization's applications.",
        details: { required: "admin" },
      });
    }
    return orgId;
  };
  const shown = ({ grant, key, user_name }: Application): ApplicationRecord => ({
    ...toRecord({ grant, key: orgs.withUse(key) }),
    user_id: grant.user_id,
    user_name,
  });
  return [
    bind(applicationList, {
      find,
      run: (_call, { limit = DEFAULT_PAGE, cursor }, orgId) => {
        const found = listApplications(queries, orgId, readCursor(CURSOR, cursor), limit + 1);
        const { rows, next_cursor } = toPage(CURSOR, found, limit, ({ key }) => key.key_id);
        return { outcome: "ok", body: { items: rows.map(shown), next_cursor } };
      },
    }),

    bind(applicationEnd, {
      find: (call, params) => {
        const found = getApplication(queries, find(call, params), String(params.grant_id));
        if (!found) throw new ServiceError("grant_not_found");
        return found;
      },
      run: async (call, _input, { grant: { key_id, user_id }, key: { name } }) => {
        call.work.whenSettled(() => orgs.holds.look());
        const body = await changes.revokeKey(key_id, (within, { made }) => {
          dropGrant(within, key_id);
          const ended = { grant_id: key_id, user_id, ended: countsOf(made) };
          call.audit.details = { grant_id: key_id, user_id, name, ...detailsOf(made) };
          call.work.keep("ok", ended);
          return ended;
        });
        return { outcome: "ok", body };
      },
    }),
  ];
}
