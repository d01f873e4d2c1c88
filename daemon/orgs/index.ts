/** Owns organizations and their keys: who is calling, and what the operator makes. */
import type { KeyId } from "../../shared/ids.ts";
import type { Bound, Caller } from "../core/operation.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { makeAuthenticate, makeIsCurrent } from "./keys.ts";
import { makeMe } from "./me.ts";

export { makeOperator } from "./operator.ts";

export interface Orgs {
  operations: Bound[];
  /** Throws missing_credentials, invalid_api_key or api_key_expired. */
  authenticate(authorization: string | null): Caller;
  /** Whether a key that was good is so still. */
  isCurrent(keyId: KeyId): boolean;
  /** The caller's own organization by its id or `self`; every other one does not exist for it. Throws org_not_found. */
  find(caller: Caller, orgId: string): string;
}

export function makeOrgs(deps: { queries: Queries }): Orgs {
  return {
    operations: [makeMe()],
    authenticate: makeAuthenticate(deps.queries),
    isCurrent: makeIsCurrent(deps.queries),
    find: (caller, orgId) => {
      if (orgId !== "self" && orgId !== caller.org_id) throw new ServiceError("org_not_found");
      if (caller.room_ids !== null) {
        throw new ServiceError("insufficient_scope", {
          detail: "The key is bound to rooms; the organization as a whole is not for it.",
        });
      }
      return caller.org_id;
    },
  };
}
